//! Tests addresses in all possible spellings, and arbitrary text.

use super::*;
use crate::policy::request::may_connect;

/// Returns spellings of a private address, of which there are too many to list in a policy.
fn forms(address: Ipv4Addr) -> Vec<String> {
    let number = u32::from(address);
    let [a, b, c, d] = address.octets();
    let low = number & 0x00FF_FFFF;
    let v6 = |head: [u16; 6]| {
        let words = head.into_iter().chain([(number >> 16) as u16, number as u16]);
        format!("[{}]", words.map(|word| format!("{word:x}")).collect::<Vec<_>>().join(":"))
    };
    vec![
        address.to_string(),
        format!("{address}."),
        number.to_string(),
        format!("{number:#x}"),
        format!("0{number:o}"),
        format!("{a}.{low}"),
        format!("{a}.{b}.{}", u32::from(c) << 8 | u32::from(d)),
        format!("{a:#x}.{b:#X}.0{c:o}.{d}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("{a:03}.{b:03}.{c:03}.{d:03}"),
        format!("0x{a:08x}.{b}.{c}.{d}"),
        address.to_string().replace('.', "\u{3002}"),
        address.to_string().replace('.', "\u{ff0e}"),
        address.to_string().chars().map(fullwidth).collect(),
        address.to_string().bytes().map(|byte| format!("%{byte:02x}")).collect::<Vec<_>>().concat(),
        format!("[::ffff:{address}]"),
        v6([0, 0, 0, 0, 0, 0xffff]),
        v6([0, 0, 0, 0, 0, 0]),
        v6([0x64, 0xff9b, 0, 0, 0, 0]),
        v6([0x64, 0xff9b, 1, 0, 0, 0]),
        v6([0x2a00, 0x1450, 0, 0, 0, 0x5efe]),
        v6([0x2a00, 0x1450, 0, 0, 0x200, 0x5efe]),
        format!("[2002:{:x}:{:x}::1]", number >> 16, number & 0xFFFF),
        format!("[2001:0:5ef5:79fb::{:x}:{:x}]", !number >> 16, !number & 0xFFFF),
        format!("[::ffff:{address}%25eth0]"),
    ]
}

fn fullwidth(letter: char) -> char {
    letter.to_digit(10).and_then(|digit| char::from_u32(0xFF10 + digit)).unwrap_or(letter)
}

fn private_v4() -> impl Strategy<Value = Ipv4Addr> {
    let ranges: Vec<(u32, u32)> = [
        ("0.0.0.0", 8),
        ("10.0.0.0", 8),
        ("100.64.0.0", 10),
        ("127.0.0.0", 8),
        ("169.254.0.0", 16),
        ("172.16.0.0", 12),
        ("192.0.0.0", 24),
        ("192.0.2.0", 24),
        ("192.168.0.0", 16),
        ("198.18.0.0", 15),
        ("198.51.100.0", 24),
        ("203.0.113.0", 24),
        ("224.0.0.0", 4),
        ("240.0.0.0", 4),
    ]
    .into_iter()
    .map(|(start, bits): (&str, u32)| (u32::from(start.parse::<Ipv4Addr>().unwrap()), u32::MAX >> bits))
    .collect();
    (prop::sample::select(ranges), any::<u32>()).prop_map(|((start, rest), random)| Ipv4Addr::from(start | random & rest))
}

fn private_v6() -> impl Strategy<Value = Ipv6Addr> {
    let ranges = [
        ("fc00::", 7),
        ("fe80::", 10),
        ("fec0::", 10),
        ("ff00::", 8),
        ("2001:db8::", 32),
        ("2002::", 16),
        ("2001::", 32),
        ("100::", 64),
        ("3fff::", 20),
        ("4000::", 3),
        ("::", 3),
    ];
    let ranges: Vec<(u128, u32)> =
        ranges.into_iter().map(|(start, bits)| (u128::from(start.parse::<Ipv6Addr>().unwrap()), bits)).collect();
    // `::/3` contains the NAT64 prefix, which leads to public addresses, and IPv4-mapped addresses.
    let leads_out = |address: &Ipv6Addr| address.segments()[0] == 0x64 || address.to_ipv4_mapped().is_some();
    (prop::sample::select(ranges), any::<u128>())
        .prop_map(|((start, bits), random)| Ipv6Addr::from(start | random & u128::MAX >> bits))
        .prop_filter("leads out", move |address| !leads_out(address))
}

proptest! {
    #[test]
    fn private_addresses_are_denied_in_every_spelling(address in private_v4(), port in prop::sample::select(vec!["", ":80", ":8080"])) {
        prop_assert!(special_purpose(address.into()).is_some());
        let enforcer = user("allowed_domains = [\"*\"]");
        for form in forms(address) {
            for url in [format!("http://{form}{port}/"), format!("HTTPS://{form}{port}?x"), format!("http://example.com@{form}{port}/")] {
                let told = explain(&enforcer, "GET", &url);
                prop_assert_eq!(told.verdict, VerdictKind::Deny, "{}", url);
            }
        }
    }

    #[test]
    fn private_ipv6_addresses_are_denied(address in private_v6()) {
        let text = address.segments().map(|segment| format!("{segment:04X}")).join(":");
        for url in [format!("http://[{address}]/"), format!("http://[{text}]:8080/")] {
            prop_assert_eq!(explain(&user(OPEN), "GET", &url).verdict, VerdictKind::Deny, "{}", url);
        }
        prop_assert!(may_connect("https://docs.rs/", IpAddr::V6(address), &[]).is_err());
    }

    #[test]
    fn host_patterns_match_only_at_label_boundaries(front in "[a-z0-9-]{0,8}", name in "[a-z]{1,6}\\.[a-z]{2,4}", back in "[a-z.]{0,6}") {
        let (exact, below) = (HostPattern::parse(&name, 1).unwrap(), HostPattern::parse(&format!("*.{name}"), 1).unwrap());
        let host = Host::Name(format!("{front}{name}{back}"));
        prop_assert_eq!(exact.names(&host), front.is_empty() && back.is_empty());
        prop_assert!(!below.names(&host));
        let host = Host::Name(format!("a{front}.{name}{back}"));
        prop_assert_eq!(below.names(&host), back.is_empty());
    }

    #[test]
    fn url_parsing_never_panics_and_is_idempotent(text in "\\PC{0,60}", scheme in prop::sample::select(vec!["", "http://", "https://", "http:", "HTTP://["])) {
        let text = format!("{scheme}{text}");
        explain(&user(OPEN), "GET", &text);
        if let Ok(read) = parse(&text) {
            let again = parse(read.as_str()).map_err(|error| TestCaseError::fail(format!("{text} is {}: {error}", read.as_str())))?;
            prop_assert_eq!(again.as_str(), read.as_str());
            prop_assert_eq!(again.host(), read.host());
        }
    }

    #[test]
    fn host_lists_do_not_panic_on_any_text(text in "\\PC{0,30}") {
        let _ = HostPattern::parse(&text, 1);
        let _ = PrivateHost::parse(&text, 1);
    }

    #[test]
    fn an_additional_layer_never_widens_permissions(url in prop::sample::select(vec!["https://docs.rs/", "http://10.0.0.5/", "https://a.test/", "https://a.test:22/", "http://localhost:3000/"]),
        project in prop::sample::select(vec!["", "allowed_domains = [\"*\"]", "allowed_private_hosts = [\"10.0.0.5\", \"localhost:3000\"]", "blocked_domains = [\"docs.rs\"]"]),
        table in prop::sample::select(vec![OPEN, ASKS, "allowed_domains = [\"docs.rs\"]", "allowed_private_hosts = [\"localhost:3000\"]"]),
        mode in prop::sample::select(vec![Mode::Plan, Mode::Ask, Mode::AutoEdit, Mode::Auto])) {
        let alone = explain(&in_mode(vec![layer(Scope::User, table)], mode), "GET", url);
        let with = explain(&in_mode(vec![layer(Scope::User, table), layer(Scope::Project, project)], mode), "GET", url);
        prop_assert!(with.verdict >= alone.verdict);
    }
}

#[test]
fn the_bounds_of_special_address_ranges_are_exact() {
    for (inside, outside) in [
        ("10.255.255.255", "11.0.0.0"),
        ("100.64.0.0", "100.63.255.255"),
        ("100.127.255.255", "100.128.0.0"),
        ("127.0.0.0", "126.255.255.255"),
        ("127.255.255.255", "128.0.0.0"),
        ("169.254.0.0", "169.253.255.255"),
        ("169.254.255.255", "169.255.0.0"),
        ("172.16.0.0", "172.15.255.255"),
        ("172.31.255.255", "172.32.0.0"),
        ("192.168.0.0", "192.167.255.255"),
        ("192.168.255.255", "192.169.0.0"),
        ("198.18.0.0", "198.17.255.255"),
        ("198.19.255.255", "198.20.0.0"),
        ("224.0.0.0", "223.255.255.255"),
        ("0.255.255.255", "1.0.0.0"),
        ("168.63.129.16", "168.63.129.17"),
        ("fdff::1", "2a00:1450::1"),
        ("2001:1ff:ffff::1", "2001:200::1"),
        ("2001:db8:ffff::1", "2001:db9::1"),
        ("2002::1", "2003::1"),
        ("64:ff9b::a00:1", "64:ff9b::808:808"),
        ("::ffff:10.0.0.1", "::ffff:8.8.8.8"),
        ("4000::1", "3ffe::1"),
    ] {
        let of = |text: &str| special_purpose(text.parse().unwrap());
        assert!(of(inside).is_some(), "{inside}");
        assert_eq!(of(outside), None, "{outside}");
    }
}

#[test]
fn unusual_spellings_of_public_addresses_need_approval_with_the_plain_address() {
    let enforcer = user(OPEN);
    for url in ["http://0x5db8d822/", "http://1572395042/", "http://93.12113954/"] {
        let told = explain(&enforcer, "GET", url);
        assert_eq!(told.verdict, VerdictKind::Ask, "{url}");
        assert!(told.reason.contains("`93.184.216.34`"), "{}", told.reason);
    }
    // Some programs read these numbers as octal, others as decimal.
    expect(&enforcer, VerdictKind::Deny, &["http://010.8.8.8/", "http://0135.0270.0330.0042/", "http://093.184.216.34/"]);
}
