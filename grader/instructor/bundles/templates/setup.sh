#!/usr/bin/env bash
# Makes the environment that Undertorch grades in. Run once, as root, while an image is built.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
home=${UNDERTORCH_HOME:-/opt/undertorch}
requirements=$here/undertorch/requirements.txt

apt-get update
apt-get install -y --no-install-recommends bubblewrap ca-certificates util-linux

# the first released Python of these that is here or can be had; torch cannot be imported with Ubuntu
# 22.04's own 3.11, which is a release candidate
pick_python() {
  local final='import sys; sys.exit(sys.version_info < (3, 11, 0, "final"))'
  for version in @PYTHONS@; do
    if apt-cache show "python$version-venv" > /dev/null 2>&1; then
      apt-get install -y --no-install-recommends "python$version" "python$version-venv"
      if "python$version" -c "$final"; then
        python=python$version
        return
      fi
    fi
  done
  return 1
}

if ! pick_python; then
  apt-get install -y --no-install-recommends software-properties-common gpg-agent
  if ! add-apt-repository --yes ppa:deadsnakes/ppa || ! pick_python; then
    echo 'There is no released Python 3.11 or later for this image. Choose another image.' >&2
    exit 1
  fi
fi

"$python" -m venv "$home"
# without CUDA: everything runs on the CPU, and PyPI's torch brings gigabytes for nothing
"$home/bin/pip" install --no-cache-dir --no-deps \
  --index-url "${TORCH_INDEX:-https://download.pytorch.org/whl/cpu}" "$(grep '^torch==' "$requirements")"
"$home/bin/pip" install --no-cache-dir -r "$requirements"
