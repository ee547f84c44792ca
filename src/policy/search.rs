//! Verdicts on web searches, based on each policy layer's rules for queries and domains, and on the data that the query
//! would send.

use super::bundle::{RuleDecision, SearchCapability, SearchRule};
use super::layer::{CompiledLayer, is_in_effect};
use super::layer_verdict::{ActionFinding, LayerVerdict, combine_layers, reason, unlisted_verdict};
use super::url::sends::contains_key;
use super::url::{Host, parse};
use crate::protocol::Risk;
use jiff::Timestamp;

const CAPABILITY: &str = "Network.Search";

/// Length, in bytes, above which a query has a high instead of a medium risk, because it may leak data.
const LONG_QUERY: usize = 256;

/// A search as the search service would receive it.
pub(crate) struct SearchText<'a> {
    pub query: &'a str,
    /// Domains to which the results are restricted. If empty, the whole web is searched.
    pub domains: &'a [String],
    /// Name of the search service, such as `Brave`. Empty if no service is configured.
    pub service: &'a str,
}

/// Returns the verdict on a search, combined across all policy layers. Plan mode does not deny searches, because they
/// change no files. No mode allows them without approval, because the query leaves this machine.
pub(crate) fn judge(searched: &SearchText<'_>, layers: &[CompiledLayer], now: Timestamp) -> ActionFinding {
    let long = searched.query.len() > LONG_QUERY;
    let risk = if long { Risk::High } else { Risk::Medium };
    let finding =
        |decided, risk| ActionFinding { decided, risk, critical: false, reads_only: true, remember: None, parts: Vec::new() };
    if contains_key(searched.query) {
        let reason = "the query contains text that looks like a key; search without it";
        return finding(LayerVerdict::deny("built-in", reason), Risk::High);
    }
    let mut hosts = Vec::new();
    for domain in searched.domains {
        match parse(&format!("https://{domain}/")) {
            Ok(destination) => hosts.push(destination.host().clone()),
            Err(reason) => return finding(LayerVerdict::deny("built-in", format!("`{domain}`: {reason}")), Risk::High),
        }
    }
    let decided = combine_layers(CAPABILITY, layers, |layer| judge_layer(searched, &hosts, layer, now));
    let decided = if long && decided.is_question() {
        LayerVerdict { reason: format!("{}; the query is long enough to leak data", decided.reason), ..decided }
    } else {
        decided
    };
    finding(decided, risk)
}

fn judge_layer(searched: &SearchText<'_>, hosts: &[Host], layer: &CompiledLayer, now: Timestamp) -> Option<LayerVerdict> {
    let Some(search) = &layer.bundle.capabilities.search else { return unlisted_verdict(CAPABILITY, layer) };
    let mut decided = judge_by_rules(searched, hosts, search, layer, now);
    decided.lock_if_managed(layer.scope);
    decided.approval_rule.clone_from(&search.approval_rule);
    Some(decided)
}

/// Returns the verdict based on rules. Deny rules are checked first, followed by ask rules, allow rules and the default
/// approval.
fn judge_by_rules(
    searched: &SearchText<'_>,
    hosts: &[Host],
    search: &SearchCapability,
    layer: &CompiledLayer,
    now: Timestamp,
) -> LayerVerdict {
    let named = |rule: &SearchRule| layer.scope.rule(rule.line);
    let by = |decision: RuleDecision| {
        search.rules.iter().find(|rule| {
            rule.decision == decision && is_in_effect(rule.expires_at, now) && rule.applies_to(searched.query, hosts)
        })
    };
    if let Some(rule) = by(RuleDecision::Deny) {
        return LayerVerdict::deny(named(rule), reason(&rule.reason, "denied by a rule"));
    }
    if let Some(rule) = by(RuleDecision::Ask) {
        return LayerVerdict::ask(named(rule), reason(&rule.reason, "a rule requires approval"));
    }
    if let Some(rule) = by(RuleDecision::Allow) {
        return LayerVerdict::allow(named(rule), reason(&rule.reason, "allowed by a rule"));
    }
    if search.requires_approval {
        let told = match searched.service {
            "" => "sends a query to a search service".to_owned(),
            service => format!("sends the query to {service}"),
        };
        return LayerVerdict::ask(layer.scope.rule(search.approval_line), told);
    }
    LayerVerdict::allow(layer.scope.rule(search.line), "the policy allows web searches")
}
