//! Rules that the user types, and rule patterns imported from other agents. A rule is accepted only if it is no wider
//! than the rules that "always allow" offers.

use super::Enforcer;
use super::grants::{ALREADY_IN_A_COPY, GrantDraft, WITH_SUBCOMMANDS, covers_only_harmless, text};
use crate::policy::bundle::Bundle;
use crate::policy::interpreters::can_run_any_code;
use crate::policy::layer::{Layer, Scope};
use crate::policy::named;
use crate::policy::paths::literal;
use crate::policy::shell::is_deceptive_name;
use crate::protocol::{Action, CommandRule, GrantOption, GrantOptions, GrantRule, Target, VerdictKind};
use jiff::Timestamp;
use std::sync::Arc;

const WORKSPACE: &str = "${workspace}";
/// Placeholder for an argument without special meaning.
const ANY_ARGUMENT: &str = "x";

impl Enforcer {
    /// Returns a typed rule as an offer if it is valid, allows the action, and is no wider than the widest offer.
    pub fn offer_written(
        &self,
        actions: &[Action],
        offers: &[GrantOption],
        line: &str,
        now: Timestamp,
    ) -> Result<GrantOption, String> {
        let rules = GrantRule::parse_line(line)?;
        for rule in &rules {
            if rule_words(rule).any(is_deceptive_name) {
                return Err(format!("`{}` contains invisible characters", line.escape_debug()));
            }
            let within = offers.iter().flat_map(|offer| &offer.rules).any(|wide| covers(wide, rule));
            if !within {
                let widest = offers.last().map(|offer| offer.rules.iter().map(ToString::to_string).collect::<Vec<_>>());
                let widest = widest.unwrap_or_default().join("; ");
                return Err(format!("`{rule}` is broader than the broadest rule offered: {widest}"));
            }
            if has_hosts(rule) {
                continue;
            }
            let harmless = actions.iter().all(|action| match action {
                Action::Exec { cwd, .. } => covers_only_harmless(rule, &self.scene(cwd, now)),
                _ => true,
            });
            if !harmless {
                return Err(format!("`{rule}` would cover commands that need approval each time"));
            }
        }
        if rules.iter().any(has_hosts) {
            let exec = actions.iter().find(|action| matches!(action, Action::Exec { .. })).ok_or("not a command")?;
            return Ok(GrantOption { written: true, ..self.offer_hosts(rules, exec, now)? });
        }
        let everywhere = rules.iter().map(|rule| self.to_global_rule(rule)).collect::<Result<_, _>>()?;
        let offer = self.offer(GrantDraft { rules, everywhere, in_memory: false }, actions, now)?;
        Ok(GrantOption { written: true, ..offer })
    }

    /// Returns the widest rules that "always allow" could save for all projects within a pattern, which matches every
    /// command that begins with `words`. Returns no rules if the policy already allows the command.
    ///
    /// # Errors
    /// Returns the reason if no rule within the pattern can be saved.
    pub fn rules_within(&self, words: &[String], cwd: &Target, now: Timestamp) -> Result<Vec<GrantRule>, String> {
        let program = words.first().map(String::as_str).unwrap_or_default();
        if program.is_empty() {
            return Err("the rule would cover every command".to_owned());
        }
        if can_run_any_code(words) {
            return Err(format!("`{program}` with any arguments can run any code"));
        }
        if words.len() == 1 && WITH_SUBCOMMANDS.contains(&program) {
            return Err(format!("the rule would cover every subcommand of `{program}`"));
        }
        let line = |words: &[String]| [Action::Exec { command: named::line(words), cwd: cwd.clone() }];
        let mut actions = line(words);
        // If only exactly these words are allowed so far, a wider rule may still be possible.
        let more = [words, &[ANY_ARGUMENT.to_owned()]].concat();
        let is_narrow = self.allows(&actions, now);
        if is_narrow {
            actions = line(&more);
            if self.allows(&actions, now) {
                return Ok(Vec::new());
            }
        }
        let always = self.always(&actions, now);
        let is_within = |offer: &&GrantOption| {
            offer.rules.iter().all(|rule| matches!(rule, GrantRule::Command(rule) if rule.words.starts_with(words)))
        };
        let widest = always.offers.iter().rev().find(is_within);
        let is_wide =
            |offer: &&GrantOption| offer.rules.iter().all(|rule| matches!(rule, GrantRule::Command(rule) if !rule.exact));
        if let Some(offer) = widest.filter(is_wide) {
            return Ok(offer.everywhere.clone());
        }
        let candidates = [false, true].map(|sandboxed| CommandRule { sandboxed, ..CommandRule::with_prefix(words.to_vec()) });
        let written = candidates
            .into_iter()
            .find_map(|rule| self.offer_written(&actions, &always.offers, &GrantRule::Command(rule).to_string(), now).ok());
        match written.as_ref().or(widest.filter(|_| !is_narrow)) {
            None if is_narrow || is_copy_only(&always) => Ok(Vec::new()),
            Some(offer) => Ok(offer.everywhere.clone()),
            None => Err(no_offer_reason(always)),
        }
    }

    /// Returns the rules that "always allow" would save for all projects and exactly these actions. Returns no rules if
    /// the policy already allows the actions.
    ///
    /// # Errors
    /// Returns the reason if no rule can be saved.
    pub fn narrowest_rules(&self, actions: &[Action], now: Timestamp) -> Result<Vec<GrantRule>, String> {
        let always = self.always(actions, now);
        match always.offers.first() {
            None if is_copy_only(&always) => Ok(Vec::new()),
            Some(offer) if offer.memory_only.is_none() => Ok(offer.everywhere.clone()),
            Some(_) | None => Err(no_offer_reason(always)),
        }
    }

    fn allows(&self, actions: &[Action], now: Timestamp) -> bool {
        self.explain(actions, now).verdict == VerdictKind::Allow
    }

    /// Returns the rules that "always allow" could save for this project to permit writing to paths that match a
    /// pattern. `sample` is one such path; returns no rules if the policy already allows writing to it.
    ///
    /// # Errors
    /// Returns the reason if no such rule can be saved.
    pub fn rules_for_paths(&self, pattern: &str, sample: &Target, now: Timestamp) -> Result<Vec<GrantRule>, String> {
        let actions = [Action::Write { target: sample.clone() }];
        if self.allows(&actions, now) {
            return Ok(Vec::new());
        }
        let always = self.always(&actions, now);
        if always.offers.is_empty() {
            return Err(no_offer_reason(always));
        }
        let rule = GrantRule::Write { paths: vec![pattern.to_owned()] };
        Ok(self.offer_written(&actions, &always.offers, &rule.to_string(), now)?.rules)
    }

    /// Makes the rule valid for all projects by converting workspace paths to absolute paths.
    fn to_global_rule(&self, rule: &GrantRule) -> Result<GrantRule, String> {
        let GrantRule::Write { paths } = rule else { return Ok(rule.clone()) };
        let absolute = |path: &String| match path.strip_prefix(WORKSPACE) {
            None => Ok(path.clone()),
            Some(rest) => match self.context.roots.as_slice() {
                [root] => root.to_str().map(|root| format!("{}{rest}", literal(root))),
                _ => None,
            }
            .ok_or_else(|| format!("`{path}` cannot be written as a path that applies in other projects")),
        };
        Ok(GrantRule::Write { paths: paths.iter().map(absolute).collect::<Result<_, _>>()? })
    }

    /// Returns the lines that need approval now but that the rules would allow.
    pub fn newly_allowed_lines(&self, rules: &[GrantRule], lines: &[String], cwd: &Target, now: Timestamp) -> Vec<String> {
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

/// Returns whether no rule is offered because the command already runs without a prompt in a copy of the workspace.
fn is_copy_only(always: &GrantOptions) -> bool {
    always.never.iter().any(|why| why.contains(ALREADY_IN_A_COPY))
}

/// Returns why no rule is offered.
fn no_offer_reason(always: GrantOptions) -> String {
    let memory_only = always.offers.into_iter().find_map(|offer| offer.memory_only);
    let reasons = always.never.into_iter().chain(memory_only).collect::<Vec<_>>().join("; ");
    if reasons.is_empty() { "no rule can be saved for this call".to_owned() } else { reasons }
}

fn has_hosts(rule: &GrantRule) -> bool {
    matches!(rule, GrantRule::Command(rule) if !rule.hosts.is_empty())
}

fn rule_words(rule: &GrantRule) -> impl Iterator<Item = &str> {
    let words: &[String] = match rule {
        GrantRule::Command(rule) => &rule.words,
        GrantRule::Write { paths } => paths,
        GrantRule::Readable { path } => std::slice::from_ref(path),
        GrantRule::Tool { .. } | GrantRule::ServerTool { .. } | GrantRule::BackendTool { .. } => &[],
    };
    words.iter().map(String::as_str)
}

/// Returns whether `wide` allows every action that `rule` allows; `false` if this is uncertain.
fn covers(wide: &GrantRule, rule: &GrantRule) -> bool {
    match (wide, rule) {
        (GrantRule::Command(wide), GrantRule::Command(narrow)) => {
            let is_plain = !wide.exact && !wide.message && !narrow.message && wide.sandboxed <= narrow.sandboxed;
            // A rule with hosts covers only rules with a subset of these hosts.
            let has_hosts = wide.hosts.is_empty() == narrow.hosts.is_empty();
            let hosts = has_hosts && narrow.hosts.iter().all(|host| wide.hosts.contains(host));
            let is_same = *wide == CommandRule { hosts: wide.hosts.clone(), ..narrow.clone() };
            hosts && (is_same || is_plain && narrow.words.starts_with(&wide.words))
        }
        (GrantRule::Write { paths }, GrantRule::Write { paths: narrow }) => {
            narrow.iter().all(|path| paths.iter().any(|wide| is_at_or_below(wide, path)))
        }
        _ => wide == rule,
    }
}

/// Returns whether a pattern is at or below the directory of another pattern and cannot leave that directory through
/// `..`.
fn is_at_or_below(wide: &str, path: &str) -> bool {
    let has_pattern = |text: &str| text.contains(['*', '?', '[', '{', '\\']);
    let Some(rest) = path.strip_prefix(wide) else { return false };
    if rest.is_empty() {
        return true;
    }
    let climbs = || rest.split(['/', '{', '}', ',', '\\']).any(|part| part == ".." || part == ".");
    rest.starts_with('/') && !has_pattern(wide.strip_prefix(WORKSPACE).unwrap_or(wide)) && !rest.contains(['$', '~']) && !climbs()
}
