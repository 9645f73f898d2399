//! Addresses and what they are, coat by coat.
#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn e1_to_e5_classes() {
    for (class, addresses) in [
        (
            Class::Public,
            &[
                "1.1.1.1",
                "8.8.8.8",
                "99.255.255.255",
                "172.32.0.1",
                "2606:4700::1",
                "64:ff9b::808:808",
                "::ffff:8.8.8.8",
            ][..],
        ),
        (Class::Loopback, &["127.0.0.1", "127.255.255.255", "::1", "::ffff:127.0.0.1"]),
        (
            Class::Private,
            &[
                "10.0.0.1",
                "172.16.0.1",
                "192.168.0.1",
                "100.64.0.1",
                "100.127.255.255",
                "fc00::1",
                "fdff::1",
                "::ffff:10.0.0.1",
            ],
        ),
        (Class::LinkLocal, &["169.254.0.1", "fe80::1", "febf::1"]),
        (
            Class::Tunnel,
            &[
                "2002:a00:1::",
                "2002:808:808::",
                "2001:0:808:808::1",
                "64:ff9b::a00:1",
                "64:ff9b::7f00:1",
            ],
        ),
        (
            Class::Reserved,
            &[
                "0.0.0.0",
                "192.0.0.1",
                "192.0.2.1",
                "198.19.0.1",
                "203.0.113.9",
                "224.0.0.1",
                "255.255.255.255",
                "::",
                "::8.8.8.8",
                "ff02::1",
                "fec0::1",
                "2001:db8::1",
                "100::1",
                "64:ff9b:1::1",
                "4000::1",
            ],
        ),
        (
            Class::Metadata,
            &[
                "169.254.169.254",
                "169.254.170.2",
                "100.100.100.200",
                "168.63.129.16",
                "192.0.0.192",
                "fd00:ec2::254",
                "fd00:ec2:1::1",
                "fd20:ce::254",
                "fd00:c1::a9fe:a9fe",
                "fd00:42::42",
                "fd00:a9fe:a9fe::1",
                "fd00:100::100:200",
                "::ffff:169.254.169.254",
                "64:ff9b::a9fe:a9fe",
                "64:ff9b:1::a9fe:a9fe",
                "2002:a9fe:a9fe::",
                "2001:0:1:1::5601:5601",
                "::169.254.169.254",
                "2606:4700::5efe:a9fe:a9fe",
            ],
        ),
    ] {
        for address in addresses {
            assert_eq!(classify(address.parse().unwrap()), class, "{address}");
        }
    }
}

#[test]
fn every_net_of_the_tables_parses() {
    assert!(V4.iter().all(|(net, _)| net.parse::<Ipv4Net>().is_ok()));
    assert!(V6.iter().all(|(net, _)| net.parse::<Ipv6Net>().is_ok()));
    assert!(METADATA_V6.iter().all(|net| net.parse::<Ipv6Net>().is_ok()));
}

#[test]
fn e4_exceptions_lift_one_range_on_one_port() {
    let exceptions = [
        Exception { cidr: "10.1.0.0/16".parse().unwrap(), port: 443 },
        Exception { cidr: "0.0.0.0/0".parse().unwrap(), port: 8443 },
        Exception { cidr: "0.0.0.0/0".parse().unwrap(), port: 7443 },
    ];
    let own = ["127.0.0.1:9000".parse().unwrap(), "0.0.0.0:8443".parse().unwrap()];
    for (address, port, expected) in [
        ("10.1.2.3", 443, Ok(())),
        ("::ffff:10.1.2.3", 443, Ok(())),
        ("10.1.2.3", 444, Err(Denied::Class(Class::Private))),
        ("10.2.0.1", 443, Err(Denied::Class(Class::Private))),
        ("169.254.169.254", 7443, Err(Denied::Class(Class::Metadata))),
        ("203.0.113.1", 7443, Err(Denied::Class(Class::Reserved))),
        ("127.0.0.1", 9000, Err(Denied::Own)),
        ("::ffff:127.0.0.1", 9000, Err(Denied::Own)),
        ("127.0.0.1", 8443, Err(Denied::Own)),
        ("192.168.1.1", 8443, Err(Denied::Own)),
        ("8.8.8.8", 8443, Ok(())),
    ] {
        assert_eq!(judge(address.parse().unwrap(), port, &exceptions, &own), expected, "{address}");
    }
}
