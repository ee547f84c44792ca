//! Ports used for the web, and services that use other ports.

/// Common ports of web servers.
const WEB: &[u16] = &[80, 443, 8080, 8443];

/// Ports of services that a request could harm. Browsers block these ports too ("bad port" in the Fetch standard).
const SERVICES: &[(u16, &str)] = &[
    (7, "echo"),
    (9, "discard"),
    (11, "systat"),
    (13, "daytime"),
    (19, "chargen"),
    (20, "ftp"),
    (21, "ftp"),
    (22, "ssh"),
    (23, "telnet"),
    (25, "mail"),
    (37, "time"),
    (42, "names"),
    (43, "whois"),
    (53, "dns"),
    (69, "tftp"),
    (79, "finger"),
    (110, "mail"),
    (111, "rpc"),
    (119, "news"),
    (123, "time"),
    (135, "rpc"),
    (137, "netbios"),
    (139, "netbios"),
    (143, "mail"),
    (161, "snmp"),
    (389, "ldap"),
    (445, "file sharing"),
    (465, "mail"),
    (513, "login"),
    (514, "shell"),
    (515, "printers"),
    (548, "file sharing"),
    (554, "streams"),
    (587, "mail"),
    (631, "printers"),
    (636, "ldap"),
    (873, "rsync"),
    (993, "mail"),
    (995, "mail"),
    (1433, "a database"),
    (1521, "a database"),
    (1719, "calls"),
    (1720, "calls"),
    (1723, "vpn"),
    (2049, "file sharing"),
    (2375, "docker"),
    (2376, "docker"),
    (2379, "etcd"),
    (3306, "a database"),
    (3389, "remote desktops"),
    (3659, "apple-sasl"),
    (4045, "rpc"),
    (5060, "calls"),
    (5061, "calls"),
    (5432, "a database"),
    (5672, "a message queue"),
    (5900, "remote desktops"),
    (6000, "x11"),
    (6379, "a database"),
    (6443, "kubernetes"),
    (6566, "scanners"),
    (6665, "chat"),
    (6666, "chat"),
    (6667, "chat"),
    (6668, "chat"),
    (6669, "chat"),
    (6679, "chat"),
    (6697, "chat"),
    (9200, "a search engine"),
    (10080, "amanda"),
    (10250, "kubernetes"),
    (11211, "a cache"),
    (27017, "a database"),
];

/// A port that is not used for the web.
pub(crate) struct UnusualPort {
    pub reason: String,
    /// Whether a service other than a web server usually listens on the port.
    pub is_service: bool,
}

pub(crate) fn unusual_port(port: u16) -> Option<UnusualPort> {
    if WEB.contains(&port) {
        return None;
    }
    let service = SERVICES.iter().find(|(known, _)| *known == port);
    let reason = match service {
        Some((_, name)) => format!("port {port} is used for {name}, not for the web"),
        None => format!("port {port} is not a web port ({})", list_ports()),
    };
    Some(UnusualPort { reason, is_service: service.is_some() })
}

fn list_ports() -> String {
    WEB.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
