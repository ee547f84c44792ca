//! Rules typed by the user: accepted only within what "always allow" offers.

use super::Enforcer;
use super::grants::{Draft, stays_harmless, text};
use crate::policy::bundle::Bundle;
use crate::policy::layer::{Layer, Scope};
use crate::policy::paths::literal;
use crate::policy::shell::hides;
use crate::protocol::{Action, CommandRule, GrantRule, Offer, Target, VerdictKind};
use jiff::Timestamp;
use std::sync::Arc;

const WORKSPACE: &str = "${workspace}";

impl Enforcer {
    /// Returns the rule as an offer if it is valid, allows the action, and is no wider than the widest offer.
    pub fn offer_written(&self, actions: &[Action], offers: &[Offer], line: &str, now: Timestamp) -> Result<Offer, String> {
        let rules = GrantRule::of_line(line)?;
        for rule in &rules {
            if rule_words(rule).any(hides) {
                return Err(format!("`{}` contains invisible characters", line.escape_debug()));
            }
            let within = offers.iter().flat_map(|offer| &offer.rules).any(|wide| covers(wide, rule));
            if !within {
                let widest = offers.last().map(|offer| offer.rules.iter().map(ToString::to_string).collect::<Vec<_>>());
                let widest = widest.unwrap_or_default().join("; ");
                return Err(format!("`{rule}` is wider than the widest rule offered: {widest}"));
            }
            if has_hosts(rule) {
                continue;
            }
            let harmless = actions.iter().all(|action| match action {
                Action::Exec { cwd, .. } => stays_harmless(rule, &self.scene(cwd, now)),
                _ => true,
            });
            if !harmless {
                return Err(format!("`{rule}` would cover commands that need approval each time"));
            }
        }
        if rules.iter().any(has_hosts) {
            let exec = actions.iter().find(|action| matches!(action, Action::Exec { .. })).ok_or("this is not a command")?;
            return Ok(Offer { written: true, ..self.offer_hosts(rules, exec, now)? });
        }
        let everywhere = rules.iter().map(|rule| self.in_all_projects(rule)).collect::<Result<_, _>>()?;
        let offer = self.offer(Draft { rules, everywhere, in_memory: false }, actions, now)?;
        Ok(Offer { written: true, ..offer })
    }

    /// Returns the rule for all projects: a path in this workspace becomes absolute.
    fn in_all_projects(&self, rule: &GrantRule) -> Result<GrantRule, String> {
        let GrantRule::Write { paths } = rule else { return Ok(rule.clone()) };
        let absolute = |path: &String| match path.strip_prefix(WORKSPACE) {
            None => Ok(path.clone()),
            Some(rest) => match self.context.roots.as_slice() {
                [root] => root.to_str().map(|root| format!("{}{rest}", literal(root))),
                _ => None,
            }
            .ok_or_else(|| format!("`{path}` cannot be expressed for other projects")),
        };
        Ok(GrantRule::Write { paths: paths.iter().map(absolute).collect::<Result<_, _>>()? })
    }

    /// Returns the lines that ask now and would be allowed with the rules.
    pub fn lets_through(&self, rules: &[GrantRule], lines: &[String], cwd: &Target, now: Timestamp) -> Vec<String> {
        let Ok(bundle) = Bundle::parse_rules(&text(rules), "the rule") else { return Vec::new() };
        let mut with = self.clone();
        Arc::make_mut(&mut with.stack).push(Layer::new(Scope::Mine, bundle), &with.context);
        let allows = |enforcer: &Self, line: &String| {
            let actions = [Action::Exec { command: line.clone(), cwd: cwd.clone() }];
            enforcer.explain(&actions, now).verdict == VerdictKind::Allow
        };
        lines.iter().filter(|line| !allows(self, line) && allows(&with, line)).cloned().collect()
    }
}

fn has_hosts(rule: &GrantRule) -> bool {
    matches!(rule, GrantRule::Command(rule) if !rule.hosts.is_empty())
}

fn rule_words(rule: &GrantRule) -> impl Iterator<Item = &str> {
    let words: &[String] = match rule {
        GrantRule::Command(rule) => &rule.words,
        GrantRule::Write { paths } => paths,
        GrantRule::Readable { path } => std::slice::from_ref(path),
        GrantRule::Tool { .. } | GrantRule::ServerTool { .. } => &[],
    };
    words.iter().map(String::as_str)
}

/// Returns whether `wide` covers everything that `rule` covers. In doubt, it does not.
fn covers(wide: &GrantRule, rule: &GrantRule) -> bool {
    match (wide, rule) {
        (GrantRule::Command(wide), GrantRule::Command(narrow)) => {
            let is_plain = !wide.exact && !wide.message && !narrow.message && wide.sandboxed <= narrow.sandboxed;
            // A rule about hosts covers only rules about some of them.
            let has_hosts = wide.hosts.is_empty() == narrow.hosts.is_empty();
            let hosts = has_hosts && narrow.hosts.iter().all(|host| wide.hosts.contains(host));
            let is_same = *wide == CommandRule { hosts: wide.hosts.clone(), ..narrow.clone() };
            hosts && (is_same || is_plain && narrow.words.starts_with(&wide.words))
        }
        (GrantRule::Write { paths }, GrantRule::Write { paths: narrow }) => {
            narrow.iter().all(|path| paths.iter().any(|wide| reaches(wide, path)))
        }
        _ => wide == rule,
    }
}

/// Returns whether a pattern lies at or below a folder that another one names, and cannot leave it through `..`.
fn reaches(wide: &str, path: &str) -> bool {
    let has_pattern = |text: &str| text.contains(['*', '?', '[', '{', '\\']);
    let Some(rest) = path.strip_prefix(wide) else { return false };
    if rest.is_empty() {
        return true;
    }
    let climbs = || rest.split(['/', '{', '}', ',', '\\']).any(|part| part == ".." || part == ".");
    rest.starts_with('/') && !has_pattern(wide.strip_prefix(WORKSPACE).unwrap_or(wide)) && !rest.contains(['$', '~']) && !climbs()
}
