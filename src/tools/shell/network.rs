//! A command's network access: the hosts that aye's proxy allows because of the policy or an approval, and notes on
//! other hosts.

use crate::policy::addresses;
use crate::policy::url::{self, Destination};
use crate::protocol::{SandboxAccess, VerdictKind};
use crate::sys::process::{End, FinishedRun};
use crate::sys::proxy::{DeniedHost, Gate, Proxy, ProxyRefusal, ProxyTarget};
use crate::sys::sandbox::NetworkAccess;
use crate::tools::settings::{MayConnect, MayFetch, ToolSettings};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Proxy policy that allows the hosts approved for a single run, unless a rule denies them.
struct ApprovedHosts {
    may_fetch: MayFetch,
    may_connect: MayConnect,
    /// Allowed servers as normalized hosts with ports.
    servers: BTreeSet<(String, u16)>,
}

/// Formats a server's address as a URL.
pub(in crate::tools) fn address(host: &str, port: u16) -> String {
    let host = if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() };
    match port {
        80 => format!("http://{host}/"),
        443 => format!("https://{host}/"),
        port => format!("https://{host}:{port}/"),
    }
}

/// Returns the proxy for a command that has this access. Without any access, all requests are blocked.
pub(in crate::tools) fn proxy(settings: &ToolSettings, opens: &[SandboxAccess]) -> Proxy {
    let servers = opens.iter().filter_map(|opened| match opened {
        SandboxAccess::Host { host, port } => url::parse(&format!("https://{host}:{port}/")).ok().map(|to| host_and_port(&to)),
        SandboxAccess::Network | SandboxAccess::Write { .. } | SandboxAccess::Read { .. } => None,
    });
    let gate = ApprovedHosts {
        may_fetch: Arc::clone(&settings.http.may_fetch),
        may_connect: Arc::clone(&settings.http.may_connect),
        servers: servers.collect(),
    };
    Proxy { gate: Arc::new(gate), fetcher: settings.http.fetcher.clone() }
}

/// Maximum number of servers to list.
const MAX_NAMED: usize = 3;

/// End of a note about servers that a command without network access names.
const ASKS_LATER: &str = ": blocked; aye asks separately if the command needs it";

/// Removes the note about servers that a command names, because the user is asked about them now.
pub(in crate::tools) fn remove_network_note(notes: &mut Vec<String>) {
    notes.retain(|note| !(note.starts_with("needs ") && note.ends_with(ASKS_LATER)));
}

/// Returns a note such as `needs example.com:443: blocked; aye asks separately if the command needs it`, for the
/// servers named in a command that has no network access.
pub(in crate::tools) fn network_note(line: &str, settings: &ToolSettings) -> Option<String> {
    if settings.command.sandbox.network != NetworkAccess::Proxied || !settings.command.sandbox.tier.is_enforcing() {
        return None;
    }
    let (mut shut, mut denied) = (Vec::new(), Vec::new());
    for to in addresses(line).iter().filter_map(|address| url::parse(address).ok()) {
        let (host, port) = host_and_port(&to);
        let told = (settings.http.may_fetch)(to.as_str(), "GET");
        let (list, words) = match told.verdict {
            VerdictKind::Deny => (&mut denied, format!("{host}:{port} ({})", told.rule)),
            VerdictKind::Allow | VerdictKind::Ask => (&mut shut, format!("{host}:{port}")),
        };
        if !list.contains(&words) {
            list.push(words);
        }
    }
    let listed = |servers: &[String]| {
        let more = if servers.len() > MAX_NAMED { ", …" } else { "" };
        format!("{}{more}", servers[..servers.len().min(MAX_NAMED)].join(", "))
    };
    let shut = (!shut.is_empty()).then(|| format!("{}{ASKS_LATER}", listed(&shut)));
    let denied = (!denied.is_empty()).then(|| format!("{}: denied", listed(&denied)));
    let all: Vec<String> = shut.into_iter().chain(denied).collect();
    (!all.is_empty()).then(|| format!("needs {}", all.join("; ")))
}

fn host_and_port(to: &Destination) -> (String, u16) {
    (to.host().to_string(), to.port())
}

impl Gate for ApprovedHosts {
    fn admit(&self, url: &str, method: &str) -> Result<ProxyTarget, ProxyRefusal> {
        let to =
            url::parse(url).map_err(|reason| ProxyRefusal { reason: format!("{reason}; nothing was sent"), denied: None })?;
        let (host, port) = host_and_port(&to);
        let refuse = |reason: String, why: &str, can_open| {
            let denied = DeniedHost { host: host.clone(), port, reason: why.to_owned(), can_open };
            Err(ProxyRefusal { reason, denied: Some(denied) })
        };
        // A deny rule overrides any approval. An ask rule is satisfied by the approval of this host.
        let told = (self.may_fetch)(to.as_str(), method);
        if told.verdict == VerdictKind::Deny {
            let why = format!("{} (rule: {})", told.reason, told.rule);
            return refuse(format!("`{host}:{port}` is denied: {why}; no approval can allow it"), &why, false);
        }
        if !self.servers.contains(&(host.clone(), port)) {
            let reason = format!("this command has no access to `{host}:{port}`; the user can allow it for one run");
            return refuse(reason, NOT_OPENED, true);
        }
        Ok(ProxyTarget { url: to.as_str().to_owned(), host: to.url_host(), port })
    }

    fn may_connect(&self, server: &ProxyTarget, address: IpAddr) -> Result<(), String> {
        (self.may_connect)(&server.url, address)
    }
}

const NOT_OPENED: &str = "not allowed";

/// Hosts to which the proxy blocked a command's access.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::tools) struct BlockedHosts {
    /// Hosts to which access can be allowed by an approval.
    pub openable: Vec<SandboxAccess>,
    /// Lines for the result, one for each host.
    pub lines: Vec<String>,
    /// Servers to which the command tried to connect without the proxy, for the result.
    pub bypassed: Vec<String>,
    /// Whether the command needs the network itself, because the proxy is of no use to it.
    pub needs_network: bool,
}

/// Returns the hosts that were blocked for a command, which ran with the access `opens`.
pub(in crate::tools) fn blocked_hosts(finished: &FinishedRun, opens: &[SandboxAccess]) -> BlockedHosts {
    let FinishedRun { denied_hosts: denied, bypasses, .. } = finished;
    let outside = |one: &DeniedHost| SandboxAccess::Host { host: one.host.clone(), port: one.port };
    let uses_proxy = !denied.is_empty() || opens.iter().any(|opened| matches!(opened, SandboxAccess::Host { .. }));
    let mut bypassed: Vec<String> = Vec::new();
    for name in bypasses.iter().map(server_name) {
        if !bypassed.contains(&name) {
            bypassed.push(name);
        }
    }
    BlockedHosts {
        openable: denied.iter().filter(|one| one.can_open).map(outside).collect(),
        lines: denied.iter().map(|one| format!("{} ({})", outside(one), one.reason)).collect(),
        bypassed,
        // A command that succeeds may only have tried, as tests and telemetry do. Some programs look up a name although
        // they then use the proxy, which does not need it.
        needs_network: finished.end != End::Exited(0) && bypasses.iter().any(|address| !uses_proxy || !is_lookup(address)),
    }
}

/// Returns whether a connection to this address looks up a name.
fn is_lookup(address: &SocketAddr) -> bool {
    address.port() == 53
}

fn server_name(address: &SocketAddr) -> String {
    if is_lookup(address) { "a name server".to_owned() } else { address.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::process::OutputCapture;

    fn denied(host: &str, can_open: bool) -> DeniedHost {
        let reason = if can_open { NOT_OPENED } else { "a private address" };
        DeniedHost { host: host.to_owned(), port: 443, reason: reason.to_owned(), can_open }
    }

    fn finished(denied_hosts: Vec<DeniedHost>, bypasses: &[&str]) -> FinishedRun {
        let output = OutputCapture::default;
        let bypasses = bypasses.iter().map(|address| address.parse().unwrap()).collect();
        FinishedRun { end: End::Exited(1), stdout: output(), stderr: output(), denied_hosts, bypasses }
    }

    #[test]
    fn the_prompt_for_access_does_not_repeat_that_the_command_needs_it() {
        let mut notes = vec![format!("needs docs.rs:443{ASKS_LATER}"), "needs a.example:443: denied".to_owned()];
        remove_network_note(&mut notes);
        assert_eq!(notes, ["needs a.example:443: denied"]);
    }

    #[test]
    fn only_hosts_that_can_be_allowed_are_offered_and_all_blocked_hosts_are_listed() {
        let kept = blocked_hosts(&finished(vec![denied("docs.rs", true), denied("10.0.0.1", false)], &[]), &[]);
        assert_eq!(kept.openable, [SandboxAccess::Host { host: "docs.rs".to_owned(), port: 443 }]);
        assert_eq!(kept.lines, ["docs.rs:443 (not allowed)", "10.0.0.1:443 (a private address)"]);
        assert!(!kept.needs_network);
    }

    #[test]
    fn a_connection_without_the_proxy_needs_the_network() {
        let kept = blocked_hosts(&finished(Vec::new(), &["192.0.2.1:443", "192.0.2.2:53", "192.0.2.3:53"]), &[]);
        assert_eq!(kept.bypassed, ["192.0.2.1:443", "a name server"]);
        assert!(kept.needs_network);
        let succeeded = FinishedRun { end: End::Exited(0), ..finished(Vec::new(), &["192.0.2.1:443"]) };
        let kept = blocked_hosts(&succeeded, &[]);
        assert!(!kept.needs_network && kept.bypassed == ["192.0.2.1:443"], "a success is only reported");
    }

    #[test]
    fn a_program_that_uses_the_proxy_needs_no_name_server() {
        let host = || SandboxAccess::Host { host: "docs.rs".to_owned(), port: 443 };
        let needs = |denied, bypasses: &[&str], opens: &[_]| blocked_hosts(&finished(denied, bypasses), opens).needs_network;
        let lookup = "127.0.0.53:53";
        assert!(needs(Vec::new(), &[lookup], &[]));
        assert!(!needs(vec![denied("docs.rs", true)], &[lookup], &[]));
        assert!(!needs(Vec::new(), &[lookup], &[host()]));
        assert!(needs(Vec::new(), &[lookup, "192.0.2.1:443"], &[host()]));
    }
}
