//! Which addresses may be dialled: a pure table over the address, decoded out
//! of every form that carries an IPv4 address inside an IPv6 one. What is not
//! known to be public is not. Looking names up is `resolve.rs`'s.

use crate::Exception;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// A vendor may live there.
    Public,
    /// This machine. A person may allow it.
    Loopback,
    /// Somebody's network. A person may allow it.
    Private,
    /// One cable. Never dialled.
    LinkLocal,
    /// An IPv4 address in an IPv6 coat. Never dialled.
    Tunnel,
    /// Unroutable, documentation, multicast, broadcast. Never dialled.
    Reserved,
    /// Hands out a cloud machine's identity. Never dialled, whoever asks.
    Metadata,
}

impl Class {
    /// The words of a refusal: the class, never the address.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Public => "a public address",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::LinkLocal => "a link-local address",
            Self::Tunnel => "an address inside another",
            Self::Reserved => "a reserved address",
            Self::Metadata => "a cloud metadata address",
        }
    }
}

/// Metadata services, most of them outside link-local: AWS and others, Alibaba,
/// Azure's wire server, Oracle.
const METADATA_V4: &[Ipv4Addr] = &[
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(169, 254, 170, 23),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];

/// The same in IPv6: AWS, Google, Oracle, Scaleway and others.
const METADATA_V6: &[&str] = &[
    "fd00:ec2::/32",
    "fd20:ce::254/128",
    "fd00:c1::a9fe:a9fe/128",
    "fd00:42::42/128",
    "fd00:a9fe:a9fe::1/128",
    "fd00:100::100:200/128",
    "fe80::a9fe:a9fe/128",
];

const V4: &[(&str, Class)] = &[
    ("127.0.0.0/8", Class::Loopback),
    ("10.0.0.0/8", Class::Private),
    ("172.16.0.0/12", Class::Private),
    ("192.168.0.0/16", Class::Private),
    ("100.64.0.0/10", Class::Private),
    ("169.254.0.0/16", Class::LinkLocal),
    ("0.0.0.0/8", Class::Reserved),
    ("192.0.0.0/24", Class::Reserved),
    ("192.0.2.0/24", Class::Reserved),
    ("192.88.99.0/24", Class::Reserved),
    ("198.18.0.0/15", Class::Reserved),
    ("198.51.100.0/24", Class::Reserved),
    ("203.0.113.0/24", Class::Reserved),
    ("224.0.0.0/4", Class::Reserved),
    ("240.0.0.0/4", Class::Reserved),
];

/// First match wins; what is left of `2000::/3` is public, the rest reserved.
const V6: &[(&str, Class)] = &[
    ("::1/128", Class::Loopback),
    ("fc00::/7", Class::Private),
    ("fe80::/10", Class::LinkLocal),
    ("2001::/32", Class::Tunnel),
    ("2002::/16", Class::Tunnel),
    ("2001::/23", Class::Reserved),
    ("2001:db8::/32", Class::Reserved),
    ("3fff::/20", Class::Reserved),
    ("2000::/3", Class::Public),
    ("::/0", Class::Reserved),
];

/// What an address is, whatever coat it wears.
pub(crate) fn classify(address: IpAddr) -> Class {
    match address {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => classify_v6(address),
    }
}

fn classify_v4(address: Ipv4Addr) -> Class {
    if METADATA_V4.contains(&address) {
        return Class::Metadata;
    }
    let row = V4.iter().find(|(net, _)| {
        let net: Option<Ipv4Net> = net.parse().ok();
        net.is_none_or(|net| net.contains(&address))
    });
    row.map_or(Class::Public, |(_, class)| *class)
}

fn classify_v6(address: Ipv6Addr) -> Class {
    let inside = |text: &str| {
        let net: Option<Ipv6Net> = text.parse().ok();
        net.is_none_or(|net| net.contains(&address))
    };
    if METADATA_V6.iter().any(|net| inside(net)) {
        return Class::Metadata;
    }
    if let Some(mapped) = address.to_ipv4_mapped() {
        return classify_v4(mapped);
    }
    let hidden = hidden_v4(address);
    if hidden.iter().any(|hidden| classify_v4(*hidden) == Class::Metadata) {
        return Class::Metadata;
    }
    // Networks without IPv4 reach every IPv4 vendor through the well-known
    // prefix, so a public address behind it is public.
    if inside("64:ff9b::/96") {
        return match hidden.iter().map(|hidden| classify_v4(*hidden)).max() {
            Some(Class::Public) => Class::Public,
            _ => Class::Tunnel,
        };
    }
    let row = V6.iter().find(|(net, _)| inside(net));
    row.map_or(Class::Reserved, |(_, class)| *class)
}

/// IPv4 addresses an IPv6 address may stand for: compatible and NAT64 (last 32
/// bits), 6to4 (bits 16 to 48), Teredo (server, and client inverted), ISATAP.
fn hidden_v4(address: Ipv6Addr) -> Vec<Ipv4Addr> {
    let parts = address.segments();
    let join = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    let last = join(parts[6], parts[7]);
    match parts {
        [0x2001, 0, ..] => vec![join(parts[2], parts[3]), join(!parts[6], !parts[7])],
        [0x2002, ..] => vec![join(parts[1], parts[2])],
        [0, 0, 0, 0, 0, 0, ..] | [0x64, 0xff9b, ..] => vec![last],
        [_, _, _, _, 0 | 0x200, 0x5efe, ..] => vec![last],
        _ => Vec::new(),
    }
}

/// A metadata address inside a range, if there is one.
pub(crate) fn metadata_in(range: &IpNet) -> Option<IpAddr> {
    // A range may be written in an IPv4 address's IPv6 coat.
    let v4 = METADATA_V4
        .iter()
        .flat_map(|address| [IpAddr::V4(*address), IpAddr::V6(address.to_ipv6_mapped())]);
    let v6 = METADATA_V6.iter().filter_map(|net| net.parse::<Ipv6Net>().ok());
    let overlap = |net: &Ipv6Net| match range {
        IpNet::V4(_) => false,
        IpNet::V6(range) => range.contains(&net.addr()) || net.contains(&range.addr()),
    };
    let v6 = v6.filter(overlap).map(|net| IpAddr::V6(net.addr()));
    v4.filter(|address| range.contains(address)).chain(v6).next()
}

/// Why an address is not dialled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denied {
    /// One of our own listeners.
    Own,
    /// Its class, and no exception lifts it.
    Class(Class),
}

/// Whether one address may be dialled for a connection. Deny always wins: an
/// exception is about the address and the port, never about the name.
pub(crate) fn judge(
    address: IpAddr,
    port: u16,
    exceptions: &[Exception],
    own: &[SocketAddr],
) -> Result<(), Denied> {
    let address = address.to_canonical();
    let class = classify(address);
    let is_own = own.iter().any(|listener| {
        let bound = listener.ip().to_canonical();
        // Bound to everything: any address of this machine could be it, and
        // only those that are not public can be told apart here.
        listener.port() == port
            && (bound == address || (bound.is_unspecified() && class != Class::Public))
    });
    if is_own {
        return Err(Denied::Own);
    }
    match class {
        Class::Public => Ok(()),
        Class::Loopback | Class::Private => {
            let lifted = exceptions
                .iter()
                .any(|exception| exception.port == port && exception.cidr.contains(&address));
            if lifted { Ok(()) } else { Err(Denied::Class(class)) }
        }
        Class::LinkLocal | Class::Tunnel | Class::Reserved | Class::Metadata => {
            Err(Denied::Class(class))
        }
    }
}

#[cfg(test)]
mod tests;
