//! Verdicts on HTTP requests, based on the URL, the resolved addresses, the lists in every policy layer, and the mode.

use super::bundle::HttpCapability;
use super::layer::{CompiledLayer, Scope};
use super::layer_verdict::{ActionFinding, LayerVerdict, combine_layers, unlisted_verdict};
use super::permit::Grant;
use super::url::host;
use super::url::ports::unusual_port;
use super::url::ranges::{AddressPurpose, special_purpose};
use super::url::sends::leak_reason;
use super::url::{Destination, Host, is_read_method, parse};
use crate::protocol::{Mode, Risk};
use core::net::IpAddr;

const CAPABILITY: &str = "Network.Http";

/// Returns the verdict on a request, combined across all policy layers, without resolving host names.
pub(crate) fn judge(url: &str, method: &str, layers: &[CompiledLayer], mode: Mode) -> ActionFinding {
    let reads_only = is_read_method(method);
    let finding = |decided, risk| ActionFinding { decided, risk, critical: false, reads_only, remember: None, parts: Vec::new() };
    let to_host = |destination: &Destination| Grant::Host {
        host: destination.host().to_string(),
        port: destination.port(),
        encrypted: destination.is_encrypted(),
    };
    let destination = match parse(url) {
        Ok(destination) => destination,
        Err(reason) => return finding(LayerVerdict::deny("built-in", reason), Risk::High),
    };
    let opened = find_allowed_host(&destination, layers);
    let carried = leak_reason(&destination);
    let service = unusual_port(destination.port()).is_some_and(|odd| odd.is_service);
    let risk = if reads_only && carried.is_none() && !service { Risk::Medium } else { Risk::High };
    let decided = combine_layers(CAPABILITY, layers, |layer| judge_layer(&destination, method, layer));
    let decided = fixed_verdict(&destination, opened.as_ref()).into_iter().chain([decided]).reduce(LayerVerdict::stricter);
    let Some(decided) = decided else { return finding(LayerVerdict::deny("built-in", "no policy grants this"), risk) };
    let decided = match carried {
        Some(why) if decided.is_question() && !decided.locked => {
            LayerVerdict { reason: format!("{}; {why}", decided.reason), ..decided }
        }
        Some(_) | None => decided,
    };
    // In auto mode, only hosts that the user put on a list are allowed without approval.
    let lists = || layers.iter().filter(|layer| layer.scope.grants()).filter_map(rules);
    let named =
        opened.is_some() || lists().any(|rules| rules.allowed.iter().flatten().any(|one| one.is_specific_to(destination.host())));
    let by_mode = mode == Mode::Auto && named && risk <= Risk::Medium && !decided.locked;
    let decided = if mode == Mode::Plan && !reads_only && !decided.is_denial() {
        LayerVerdict::deny("plan mode", "plan mode allows no changes")
    } else if by_mode && decided.is_question() {
        LayerVerdict::allow("auto mode", decided.reason)
    } else {
        decided
    };
    // A plan never covers a request that sends data or that no rule may allow.
    let is_plain = reads_only && risk <= Risk::Medium && !decided.locked;
    let remember = is_plain.then(|| to_host(&destination));
    ActionFinding { remember, ..finding(decided, risk) }
}

/// Returns an error if a connection for this URL may not be made to the resolved address.
pub(crate) fn may_connect(url: &str, address: IpAddr, layers: &[CompiledLayer]) -> Result<(), String> {
    let destination = parse(url)?;
    let Some(kind) = special_purpose(address) else { return Ok(()) };
    let by_name = matches!(destination.host(), Host::Name(_)) && kind.is_own_network();
    let itself = *destination.host() == Host::Address(address);
    if find_allowed_host(&destination, layers).is_some() && (by_name || itself) {
        return Ok(());
    }
    let shown = Host::Address(address);
    Err(match destination.host() {
        Host::Name(name) => format!("`{name}` resolves to `{shown}`, {}; {ONLY_PUBLIC}", kind.description()),
        Host::Address(_) => format!("`{shown}` is {}; {ONLY_PUBLIC}", kind.description()),
    })
}

const ONLY_PUBLIC: &str = "only public hosts are allowed";

fn rules(layer: &CompiledLayer) -> Option<&HttpCapability> {
    layer.bundle.capabilities.http.as_ref()
}

/// A non-public host that the user or an administrator explicitly allowed. A project cannot allow such a host.
struct AllowedHost {
    rule: String,
    with_port: bool,
}

fn find_allowed_host(destination: &Destination, layers: &[CompiledLayer]) -> Option<AllowedHost> {
    let may = |layer: &&CompiledLayer| matches!(layer.scope, Scope::User | Scope::File | Scope::Managed);
    let of_layer = |layer: &CompiledLayer| {
        let named = rules(layer)?.private.iter().filter_map(|one| Some((one.names(destination)?, one.line)));
        let (with_port, line) = named.max_by_key(|(with_port, _)| *with_port)?;
        Some(AllowedHost { rule: layer.scope.rule(line), with_port })
    };
    layers.iter().filter(may).filter_map(of_layer).max_by_key(|opened| opened.with_port)
}

/// Returns the verdict that applies regardless of any bundle.
fn fixed_verdict(destination: &Destination, opened: Option<&AllowedHost>) -> Option<LayerVerdict> {
    let kind = match destination.host() {
        Host::Address(address) => special_purpose(*address),
        Host::Name(_) => None,
    };
    match (destination.host(), kind, opened) {
        (host, Some(kind), None) => {
            return Some(LayerVerdict::deny("built-in", format!("`{host}` is {}; {ONLY_PUBLIC}", kind.description())));
        }
        (Host::Name(name), None, None) => {
            if let Some(why) = host::local(name) {
                return Some(LayerVerdict::deny("built-in", format!("`{name}` {why}; {ONLY_PUBLIC}")));
            }
        }
        (host, Some(AddressPurpose::Metadata | AddressPurpose::LinkLocal), Some(opened)) => {
            return Some(
                LayerVerdict::ask(opened.rule.clone(), format!("`{host}` can expose cloud credentials")).not_grantable(),
            );
        }
        (Host::Address(_) | Host::Name(_), _, _) => {}
    }
    let port = unusual_port(destination.port()).filter(|_| opened.is_none_or(|opened| !opened.with_port));
    let reason = match (destination.doubt(), port) {
        (None, None) => return None,
        (Some(doubt), None) => doubt.to_owned(),
        (None, Some(port)) => port.reason,
        (Some(doubt), Some(port)) => format!("{doubt}; {}", port.reason),
    };
    Some(LayerVerdict::ask("built-in", reason).not_grantable())
}

fn judge_layer(destination: &Destination, method: &str, layer: &CompiledLayer) -> Option<LayerVerdict> {
    let (host, scope) = (destination.host(), layer.scope);
    let Some(rules) = rules(layer) else { return unlisted_verdict(CAPABILITY, layer) };
    if let Some(blocked) = rules.blocked.iter().find(|pattern| pattern.blocks(host)) {
        return Some(LayerVerdict::deny(scope.rule(blocked.line), format!("`{host}` is in `blocked_domains`")));
    }
    // A private host counts as an entry of the allow list of the same layer.
    let own = rules.private.iter().find(|one| one.names(destination).is_some()).map(|one| one.line);
    let listed = rules.allowed.as_ref().map(|allowed| allowed.iter().find(|one| one.names(host)).map(|one| one.line));
    if listed == Some(None) && own.is_none() {
        return Some(LayerVerdict::deny(scope.rule(rules.allowed_line), format!("`{host}` is not in `allowed_domains`")));
    }
    let mut decided = if rules.requires_approval {
        LayerVerdict::ask(scope.rule(rules.approval_line), format!("sends a {method} request to `{host}`"))
    } else {
        let line = listed.flatten().or(own).unwrap_or(rules.line);
        LayerVerdict::allow(scope.rule(line), format!("the policy allows requests to `{host}`"))
    };
    decided.lock_if_managed(scope);
    decided.approval_rule.clone_from(&rules.approval_rule);
    Some(decided)
}
