// Networks as others measured their all-reduces: bandwidth, latency, and whose numbers they are. No DOM.

const MLE = "https://github.com/stas00/ml-engineering/tree/master/network/benchmarks";
const GLOO = "https://github.com/pytorch/gloo/issues/";

/**
 * [key, name, MiB of gradients per ms, ms per all-reduce, what was measured, how well the two numbers say it,
 * ...sources]. No link's own rate: bytes to be averaged, by the time that it takes.
 */
export const NETWORKS = [
  ["node", "8 × H200, one machine", 190, 0.02, "eight H200 with NVLink, 32 KiB to 128 MiB", "within 24 %",
    ["ml-engineering", `${MLE}#how-the-calls-are-timed`]],
  ["nodes", "32 × B200, four machines", 135, 0.19, "eight B200 in each of four machines, 1 to 128 MiB", "within 32 %",
    ["ml-engineering", `${MLE}#all_reduce-benchmark`]],
  ["nics", "2 × H100, two machines", 45, 0.07, "an H100 in each of two machines with four network cards, 2 to 32 MiB", "within 6 %",
    ["nccl-tests, issue 232", "https://github.com/NVIDIA/nccl-tests/issues/232"]],
  ["pcie", "8 × RTX PRO 6000, PCIe", 22.4, 0.024, "eight of them behind PCIe switches, 24 µs up to 64 KiB and 41.1 GB/s of bus bandwidth from 8 MiB on", "from two tables",
    ["rtx6kpro", "https://github.com/voipmonitor/rtx6kpro/blob/master/hardware/pcie-bandwidth.md#nccl-allreduce-bus-bandwidth"]],
  ["tcp", "2 × V100 over TCP", 1.1, 1.2, "a V100 in each of two machines, 1 to 16 MiB", "within 16 %",
    ["cswinter", "https://gist.github.com/cswinter/3bc2cbcc7c947e4a2736188dd6e74240"]],
  ["home", "two computers, 1 Gb/s", 0.106, 0.35, "Gloo on an Ethernet of 1 Gb/s takes 180 ms for 20 MB, and 0.35 ms for 1 KB over TCP elsewhere", "from two tests",
    ["gloo, issue 21", `${GLOO}21`], ["issue 158", `${GLOO}158`]],
];
