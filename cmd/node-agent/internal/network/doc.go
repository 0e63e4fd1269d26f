// Package network is the node's side of the members' network. Each member has a network namespace with one address, on
// a pair of devices whose other end is the node's. Members share no segment, so a member can neither listen to another
// nor use its address.
//
//	member a ── eth0 ═ gpm-… ┐              ┌ gpm-… ═ eth0 ── member b
//	 /32, default route      node 1 ═══════ node 2            /32, default route
//	                         routes, where the nodes share a segment; else VXLAN
//
// What members may reach is decided on the node, in a table of nftables that is this package's own. In its order:
// a source address that is not the member's own is dropped; replies pass; link-local addresses, with them the metadata
// of clouds, are refused; members of one instance reach each other, and the instances whose share theirs accepted;
// declared endpoints are open; every other member, and the services of every node, are refused; the rest of the world
// is reached under the node's address. A member that is given the right to change its own network changes its own side
// alone.
//
// The table is replaced as a whole, in one transaction of the kernel, with each new view of the platform; routes and
// devices are compared with the view. So a restarted agent puts right whatever it finds.
package network
