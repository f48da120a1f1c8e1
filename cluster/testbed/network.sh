# A network of network namespaces with shaped links; to be sourced. Needs root, `ip` and `tc`.
#
#   star:  node 0 --+              tree:  node 0 --+             uplink             +-- node 2
#          node 1 --+-- leaf0             node 1 --+-- leaf0 ----------- leaf1 -----+-- node 3
#          ...
#
# Every node is a namespace with one interface, eth0. The switches are bridges in a namespace of
# their own, so that no link, address or firewall rule of the machine is touched, and nothing is left
# of links when the namespaces are gone. A node's namespace is called by its address, behind a prefix
# that has the number of this process: other runs and users have other names.
# shellcheck shell=bash
export TESTBED_PREFIX=testbed$$-
switches=${TESTBED_PREFIX}switches
agent=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/agent.sh

# The address of node $1, which counts from 0.
node_address() { echo "10.77.0.$(($1 + 1))"; }

# on NODE COMMAND...: runs a command on a node.
on() {
  local address
  address=$(node_address "$1")
  shift
  "$agent" "$address" "$(printf '%q ' "$@")"
}

# shape NAMESPACE LINK MBIT: what leaves by this link has this rate. A token bucket holds 32 KiB, and
# the kernel hands over no larger packets than 16 kB, which would not fit.
shape() {
  ip -n "$1" link set "$2" gso_max_size 16000 &&
    tc -n "$1" qdisc add dev "$2" root tbf rate "${3}mbit" burst 32k latency 50ms
}

add_switch() {
  ip -n "$switches" link add "$1" type bridge && ip -n "$switches" link set "$1" up
}

# add_node NODE SWITCH MBIT: a node with a link of this rate, both ways. TCP controls congestion alike on
# all machines, in the way that every kernel has.
add_node() {
  local address namespace port=node$1
  address=$(node_address "$1")
  namespace=$TESTBED_PREFIX$address
  ip netns add "$namespace" &&
    ip -n "$namespace" link set lo up &&
    ip netns exec "$namespace" sh -c "echo reno > /proc/sys/net/ipv4/tcp_congestion_control" &&
    ip -n "$switches" link add "$port" type veth peer name eth0 netns "$namespace" &&
    ip -n "$switches" link set "$port" master "$2" up &&
    ip -n "$namespace" address add "$address/24" dev eth0 &&
    ip -n "$namespace" link set eth0 up &&
    shape "$switches" "$port" "$3" &&
    shape "$namespace" eth0 "$3"
}

# add_uplink MBIT: joins leaf0 and leaf1 by one link of this rate, both ways.
add_uplink() {
  ip -n "$switches" link add up0 type veth peer name up1 &&
    ip -n "$switches" link set up0 master leaf0 up &&
    ip -n "$switches" link set up1 master leaf1 up &&
    shape "$switches" up0 "$1" &&
    shape "$switches" up1 "$1"
}

# build_star NODES MBIT: all nodes at one switch, in place of the network that was there.
build_star() {
  local node
  remove_network
  ip netns add "$switches" && add_switch leaf0 || return 1
  for ((node = 0; node < $1; node++)); do
    add_node "$node" leaf0 "$2" || return 1
  done
}

# build_tree NODES MBIT: half of the nodes at each of two switches, and one link of the same rate
# between these, in place of the network that was there.
build_tree() {
  local node
  remove_network
  ip netns add "$switches" && add_switch leaf0 && add_switch leaf1 && add_uplink "$2" || return 1
  for ((node = 0; node < $1; node++)); do
    add_node "$node" "leaf$((node / ($1 / 2)))" "$2" || return 1
  done
}

# Ends what still runs on the nodes, since a namespace lives as long as a process in it, and removes
# all of it.
remove_network() {
  local namespace pids
  for namespace in /run/netns/"$TESTBED_PREFIX"*; do
    [ -e "$namespace" ] || continue
    namespace=${namespace##*/}
    pids=$(ip netns pids "$namespace")
    # shellcheck disable=SC2086 # a list of numbers
    [ -z "$pids" ] || kill -KILL $pids 2> /dev/null
    ip netns delete "$namespace"
  done
}
