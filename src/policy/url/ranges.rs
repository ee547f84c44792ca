//! Address ranges that are not public, according to the IANA special-purpose registries.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use ipnet::{Ipv4Net, Ipv6Net};

/// Purpose of an address outside the public Internet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressPurpose {
    Unspecified,
    Loopback,
    Private,
    Shared,
    LinkLocal,
    Metadata,
    Multicast,
    Broadcast,
    Benchmark,
    Documentation,
    Tunnel,
    Discard,
    Reserved,
}

impl AddressPurpose {
    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Unspecified => "an address of this host",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::Shared => "a shared address inside a provider's network",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "a cloud metadata address, which serves credentials",
            Self::Multicast => "a multicast address",
            Self::Broadcast => "a broadcast address",
            Self::Benchmark => "a benchmarking address",
            Self::Documentation => "a documentation address",
            Self::Tunnel => "a tunnel address",
            Self::Discard => "a discard-only address",
            Self::Reserved => "a reserved address",
        }
    }

    /// Returns whether an address can be in the user's own network, in which case a trusted name may resolve to it.
    pub(crate) fn is_own_network(self) -> bool {
        match self {
            Self::Loopback | Self::Private | Self::Shared => true,
            Self::Unspecified
            | Self::LinkLocal
            | Self::Metadata
            | Self::Multicast
            | Self::Broadcast
            | Self::Benchmark
            | Self::Documentation
            | Self::Tunnel
            | Self::Discard
            | Self::Reserved => false,
        }
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6(head: [u16; 4], bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(head[0], head[1], head[2], head[3], 0, 0, 0, 0), bits)
}

/// IPv4 ranges and their purposes. The first range that contains an address applies.
const V4: &[(Ipv4Net, AddressPurpose)] = &[
    (v4(0, 0, 0, 0, 8), AddressPurpose::Unspecified),       // RFC 791, "this network"
    (v4(10, 0, 0, 0, 8), AddressPurpose::Private),          // RFC 1918
    (v4(100, 100, 100, 200, 32), AddressPurpose::Metadata), // Alibaba Cloud
    (v4(100, 64, 0, 0, 10), AddressPurpose::Shared),        // RFC 6598
    (v4(127, 0, 0, 0, 8), AddressPurpose::Loopback),        // RFC 1122
    (v4(168, 63, 129, 16, 32), AddressPurpose::Metadata),   // Azure's platform, within public addresses
    (v4(169, 254, 169, 254, 32), AddressPurpose::Metadata), // AWS, Azure, Google Cloud and others
    (v4(169, 254, 170, 0, 24), AddressPurpose::Metadata),   // credentials of containers on AWS
    (v4(169, 254, 0, 0, 16), AddressPurpose::LinkLocal),    // RFC 3927
    (v4(172, 16, 0, 0, 12), AddressPurpose::Private),       // RFC 1918
    (v4(192, 0, 0, 192, 32), AddressPurpose::Metadata),     // Oracle Cloud
    (v4(192, 0, 0, 0, 24), AddressPurpose::Reserved),       // RFC 6890, IETF protocol assignments
    (v4(192, 0, 2, 0, 24), AddressPurpose::Documentation),  // RFC 5737
    (v4(192, 88, 99, 0, 24), AddressPurpose::Tunnel),       // RFC 7526, 6to4 relays
    (v4(192, 168, 0, 0, 16), AddressPurpose::Private),      // RFC 1918
    (v4(198, 18, 0, 0, 15), AddressPurpose::Benchmark),     // RFC 2544
    (v4(198, 51, 100, 0, 24), AddressPurpose::Documentation), // RFC 5737
    (v4(203, 0, 113, 0, 24), AddressPurpose::Documentation), // RFC 5737
    (v4(224, 0, 0, 0, 4), AddressPurpose::Multicast),       // RFC 5771
    (v4(255, 255, 255, 255, 32), AddressPurpose::Broadcast), // RFC 919
    (v4(240, 0, 0, 0, 4), AddressPurpose::Reserved),        // RFC 1112
];

const V6: &[(Ipv6Net, AddressPurpose)] = &[
    (Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 128), AddressPurpose::Unspecified), // RFC 4291
    (Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128), AddressPurpose::Loopback),      // RFC 4291
    (v6([0x64, 0xff9b, 1, 0], 48), AddressPurpose::Tunnel),                         // RFC 8215, local translation
    (v6([0x100, 0, 0, 0], 64), AddressPurpose::Discard),                            // RFC 6666
    (v6([0x2001, 0, 0, 0], 32), AddressPurpose::Tunnel),                            // RFC 4380, Teredo
    (v6([0x2001, 2, 0, 0], 48), AddressPurpose::Benchmark),                         // RFC 5180
    (v6([0x2001, 0, 0, 0], 23), AddressPurpose::Reserved),                          // RFC 2928, IETF protocol assignments
    (v6([0x2001, 0xdb8, 0, 0], 32), AddressPurpose::Documentation),                 // RFC 3849
    (v6([0x2002, 0, 0, 0], 16), AddressPurpose::Tunnel),                            // RFC 3056, 6to4
    (v6([0x3fff, 0, 0, 0], 20), AddressPurpose::Documentation),                     // RFC 9637
    (v6([0xfd00, 0xec2, 0, 0], 32), AddressPurpose::Metadata),                      // AWS
    (v6([0xfd20, 0xce, 0, 0], 32), AddressPurpose::Metadata),                       // Google Cloud
    (v6([0xfc00, 0, 0, 0], 7), AddressPurpose::Private),                            // RFC 4193
    (v6([0xfe80, 0, 0, 0], 10), AddressPurpose::LinkLocal),                         // RFC 4291
    (v6([0xfec0, 0, 0, 0], 10), AddressPurpose::Private),                           // RFC 3879, site-local
    (v6([0xff00, 0, 0, 0], 8), AddressPurpose::Multicast),                          // RFC 4291
];

/// IPv6 range that contains all public addresses (RFC 4291).
const GLOBAL_UNICAST: Ipv6Net = v6([0x2000, 0, 0, 0], 3);
/// Prefix used by NAT64 translators (RFC 6052). The last 32 bits of such an address are the IPv4 address of the target.
const NAT64: Ipv6Net = v6([0x64, 0xff9b, 0, 0], 96);

/// Returns the purpose of an address, or `None` if the address belongs to the public Internet.
pub(crate) fn special_purpose(address: IpAddr) -> Option<AddressPurpose> {
    match address {
        IpAddr::V4(address) => V4.iter().find(|(range, _)| range.contains(&address)).map(|(_, kind)| *kind),
        IpAddr::V6(address) => special_v6(address),
    }
}

fn special_v6(address: Ipv6Addr) -> Option<AddressPurpose> {
    let named = V6.iter().find(|(range, _)| range.contains(&address)).map(|(_, kind)| *kind);
    if named.is_some() {
        // If a tunnel leads to a private address, the purpose of that address is more informative.
        return tunnel_endpoint(address).and_then(|inner| special_purpose(inner.into())).or(named);
    }
    if address.to_ipv4_mapped().is_some() || NAT64.contains(&address) {
        return special_purpose(last_32(address).into());
    }
    if !GLOBAL_UNICAST.contains(&address) {
        // `::/96` once contained IPv4 addresses (RFC 4291).
        let compatible = address.segments()[..6].iter().all(|segment| *segment == 0);
        return compatible.then(|| special_purpose(last_32(address).into())).flatten().or(Some(AddressPurpose::Reserved));
    }
    isatap(address).and_then(|inner| special_purpose(inner.into()))
}

fn last_32(address: Ipv6Addr) -> Ipv4Addr {
    let [.., a, b, c, d] = address.octets();
    Ipv4Addr::new(a, b, c, d)
}

/// Returns the IPv4 address of the remote tunnel endpoint that a 6to4 or Teredo address contains.
fn tunnel_endpoint(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let bytes = address.octets();
    match address.segments() {
        [0x2002, ..] => Some(Ipv4Addr::new(bytes[2], bytes[3], bytes[4], bytes[5])),
        [0x2001, 0, ..] => Some(Ipv4Addr::new(!bytes[12], !bytes[13], !bytes[14], !bytes[15])),
        [0x64, 0xff9b, 1, ..] => Some(last_32(address)),
        _ => None,
    }
}

/// Returns the IPv4 address contained in an ISATAP interface identifier (RFC 5214).
fn isatap(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    (matches!(segments[4], 0 | 0x200) && segments[5] == 0x5efe).then(|| last_32(address))
}
