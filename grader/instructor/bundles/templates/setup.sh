#!/usr/bin/env bash
# Makes the environment that Undertorch grades in. Run once, as root, while an image is built.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
home=${UNDERTORCH_HOME:-/opt/undertorch}
requirements=$here/undertorch/requirements.txt

apt-get update
apt-get install -y --no-install-recommends bubblewrap ca-certificates util-linux

# the Python that the versions below were picked with comes first
python=
for version in @PYTHONS@; do
  if apt-cache show "python$version-venv" > /dev/null 2>&1; then
    python=python$version
    break
  fi
done
if [ -z "$python" ]; then
  echo 'This image offers no Python 3.11 or later. Choose a newer one.' >&2
  exit 1
fi
apt-get install -y --no-install-recommends "$python" "$python-venv"

"$python" -m venv "$home"
# without CUDA: everything runs on the CPU, and PyPI's torch brings gigabytes for nothing
"$home/bin/pip" install --no-cache-dir --no-deps \
  --index-url "${TORCH_INDEX:-https://download.pytorch.org/whl/cpu}" "$(grep '^torch==' "$requirements")"
"$home/bin/pip" install --no-cache-dir -r "$requirements"
