#!/usr/bin/env bash
# agent.sh ADDRESS COMMAND...: runs a shell command on a node of the testbed (network.sh); mpirun
# takes it in place of ssh. Every node has a host name of its own: Open MPI names a temporary folder
# after it, and where all nodes shared that folder one of thirteen runs crashed at the start.
address=$1
shift
# shellcheck disable=SC2016 # expanded on the node
exec ip netns exec "$TESTBED_PREFIX$address" \
  unshare --uts bash -c 'echo "$0" > /proc/sys/kernel/hostname; exec bash -c "$1"' \
  "node$((${address##*.} - 1))" "$*"
