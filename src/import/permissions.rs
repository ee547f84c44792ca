//! Conversion of other agents' permissions to policy rules. An allow rule is never broader than what "always allow"
//! could save.

use super::command_pattern::{CommandPattern, split_plain_command};
use super::settings::{Permission, SettingsOwner, Subject, Unsupported};
use crate::config::grants::{self, Restriction, RestrictionSubject, RuleWithExamples};
use crate::host::other_agents::Agent;
use crate::host::user_policy;
use crate::policy::{Bundle, Enforcer, line};
use crate::protocol::{Action, CommandRule, GrantRule, Place, Target, VerdictKind};
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::path::Path;

/// Maximum number of commands into which a pattern with alternatives is expanded.
const MAX_ALTERNATIVES: usize = 64;
const EVERY_COMMAND: &str = "the rule would allow every command";
const WORKSPACE: &str = "${workspace}";

/// Converts permissions to policy rules.
pub(super) struct Judge<'a> {
    pub agent: Agent,
    /// The user's policy, which determines the rules that may be saved.
    pub enforcer: &'a Enforcer,
    pub workspace: &'a Path,
    pub now: Timestamp,
    /// Whether to import allow entries from files in the project.
    pub accepts_project: bool,
}

/// New text of a policy file, and what happened to each permission.
#[derive(Debug, Default)]
pub(super) struct PolicyImport {
    pub text: String,
    /// Permissions that are already in effect, as written in the settings.
    pub in_force: Vec<String>,
    /// Permissions that are imported only in part, each with a description of that part.
    pub narrowed: Vec<(String, String)>,
    pub left_out: Vec<Unsupported>,
}

/// Change to be made to a policy file.
#[derive(Debug, Clone)]
enum PolicyEdit {
    Allow(Vec<RuleWithExamples>),
    Restrict(Vec<Restriction>),
    DisableTools(Vec<String>),
    BlockDomains(Vec<String>),
}

/// Permission, the change that imports it, and a description of the imported part if that is not all of it.
type PlannedEdit<'a> = (&'a Permission, PolicyEdit, Option<String>);

/// Outcome of converting a permission.
enum PermissionResult {
    Change(PolicyEdit, Option<String>),
    InForce,
    LeftOut(String),
}

impl Judge<'_> {
    /// Adds the permissions from the user's or the project's settings to the text of the corresponding policy file.
    pub(super) fn apply(&self, base: &str, level: SettingsOwner, permissions: &[Permission]) -> PolicyImport {
        let mut change = PolicyImport { text: base.to_owned(), ..PolicyImport::default() };
        let grants = |capability: &str| match level {
            SettingsOwner::Project => true,
            SettingsOwner::User => Bundle::parse(base, "policy.toml")
                .is_ok_and(|bundle| bundle.extends || bundle.capabilities.granted.iter().any(|granted| granted == capability)),
        };
        let mut edits = Vec::new();
        for permission in permissions.iter().filter(|permission| permission.level == level) {
            match self.decide(permission) {
                PermissionResult::Change(edit, _) if edit.capability().is_some_and(|capability| !grants(capability)) => {
                    change.in_force.extend((permission.verdict != VerdictKind::Allow).then(|| permission.text.clone()));
                    if permission.verdict == VerdictKind::Allow {
                        change.left_out.push(not_imported(permission, "your policy does not grant the capability".to_owned()));
                    }
                }
                PermissionResult::Change(edit, narrowed) => edits.push((permission, edit, narrowed)),
                PermissionResult::InForce => change.in_force.push(permission.text.clone()),
                PermissionResult::LeftOut(why) => change.left_out.push(not_imported(permission, why)),
            }
        }
        self.edit_all(level, base, &edits, &mut change);
        change
    }

    /// Makes all changes at once. If the result is invalid, makes each half of them on its own, down to single changes,
    /// and skips those that are invalid. `base` is the text before all changes.
    fn edit_all(&self, level: SettingsOwner, base: &str, edits: &[PlannedEdit<'_>], change: &mut PolicyImport) {
        if edits.is_empty() {
            return;
        }
        let edited = |edits: &[PlannedEdit<'_>]| {
            let text = self.apply_edits(&change.text, level, edits)?;
            is_valid(&text, level).map(|()| text)
        };
        match (edited(edits), edits) {
            (Ok(text), _) => {
                self.count_all(level, base, edits, change);
                change.text = text;
            }
            (Err(why), [(permission, edit, narrowed)]) => match edited(&[(*permission, edit.without_examples(), None)]) {
                Ok(text) => {
                    change.count(permission, edit, narrowed.clone(), text == change.text);
                    change.text = text;
                }
                Err(_) => change.left_out.push(not_imported(permission, why)),
            },
            (Err(_), edits) => {
                let (first, rest) = edits.split_at(edits.len() / 2);
                self.edit_all(level, base, first, change);
                self.edit_all(level, base, rest, change);
            }
        }
    }

    /// Counts changes that have been made. Those that do not change `base` were already in effect.
    fn count_all(&self, level: SettingsOwner, base: &str, edits: &[PlannedEdit<'_>], change: &mut PolicyImport) {
        let is_same = self.apply_edits(base, level, edits).as_deref() == Ok(base);
        if is_same || edits.len() <= 1 {
            for (permission, edit, narrowed) in edits {
                change.count(permission, edit, narrowed.clone(), is_same);
            }
            return;
        }
        let (first, rest) = edits.split_at(edits.len() / 2);
        self.count_all(level, base, first, change);
        self.count_all(level, base, rest, change);
    }

    /// Makes several changes. Those of the same kind are made together, because each change parses the whole text.
    fn apply_edits(&self, text: &str, level: SettingsOwner, edits: &[PlannedEdit<'_>]) -> Result<String, String> {
        let mut joined: Vec<PolicyEdit> = Vec::new();
        for (_, edit, _) in edits {
            let is_joined = joined.last_mut().is_some_and(|last| last.join(edit));
            if !is_joined {
                joined.push(edit.clone());
            }
        }
        joined.iter().try_fold(text.to_owned(), |text, edit| self.apply_edit(&text, level, edit))
    }

    fn apply_edit(&self, text: &str, level: SettingsOwner, edit: &PolicyEdit) -> Result<String, String> {
        let text = match (level, edit) {
            (SettingsOwner::Project, _) | (SettingsOwner::User, PolicyEdit::DisableTools(_)) => text.to_owned(),
            (SettingsOwner::User, PolicyEdit::Restrict(rules)) => {
                let mut capabilities: Vec<&str> = rules.iter().map(|rule| rule.subject.capability()).collect();
                let mut seen = BTreeSet::new();
                capabilities.retain(|name| seen.insert(*name));
                capabilities.into_iter().fold(text.to_owned(), |text, name| user_policy::with_capability(&text, name))
            }
            (SettingsOwner::User, edit) => user_policy::with_capability(text, edit.capability().unwrap_or_default()),
        };
        match edit {
            PolicyEdit::Allow(rules) => {
                let day = self.now.strftime("%Y-%m-%d");
                let reason = format!("{}{day}, imported from {}", grants::REASON, self.agent.title());
                grants::add_rules_with_examples(&text, rules, &reason)
            }
            PolicyEdit::Restrict(rules) => grants::add_restrictions(&text, rules),
            PolicyEdit::DisableTools(names) => grants::with_disabled_tools(&text, names),
            PolicyEdit::BlockDomains(domains) => grants::with_blocked_domains(&text, domains),
        }
    }

    fn decide(&self, permission: &Permission) -> PermissionResult {
        let decided = match permission.verdict {
            VerdictKind::Allow if permission.level == SettingsOwner::Project && !self.accepts_project => {
                Err("the project is not trusted; review the plan without `--yes`, or pass `--trust`".to_owned())
            }
            VerdictKind::Allow => self.allow(permission),
            verdict @ (VerdictKind::Ask | VerdictKind::Deny) => self.restrict(permission, verdict),
        };
        decided.unwrap_or_else(PermissionResult::LeftOut)
    }

    fn allow(&self, permission: &Permission) -> Result<PermissionResult, String> {
        let (rules, is_narrow) = match &permission.subject {
            Subject::Command(CommandPattern::Every) => return Err(EVERY_COMMAND.to_owned()),
            Subject::Command(CommandPattern::Line(line)) => {
                let actions = [Action::Exec { command: line.clone(), cwd: self.cwd() }];
                (self.enforcer.narrowest_rules(&actions, self.now)?, false)
            }
            Subject::Command(CommandPattern::Beginning(words)) => (self.rules_within(words)?, true),
            Subject::Command(CommandPattern::Other(why)) | Subject::Other(why) => return Err(why.clone()),
            Subject::Write(patterns) if permission.level == SettingsOwner::Project => (self.rules_for_paths(patterns)?, false),
            Subject::Write(_) => {
                return Err(
                    "a rule for all projects needs absolute paths; press `a` in the first approval to save one".to_owned()
                );
            }
            Subject::Read(_) => {
                return Err("workspace files can be read without approval; add other paths to `allowed_paths` of \
                            File.Read"
                    .to_owned());
            }
            Subject::Web(_) => return Err("each request needs its own approval".to_owned()),
            Subject::Search => {
                return Err("each web search needs its own approval; `Network.Search` in your policy can allow some".to_owned());
            }
            Subject::Server(server, _) => {
                return Err(format!(
                    "a rule applies to one version of a tool; run `aye mcp allow {server}`, and press `a` in the first approval"
                ));
            }
            Subject::Tools(_) => {
                return Err("the rule would allow every use of a tool; `--mode auto-edit` edits without asking".to_owned());
            }
        };
        if rules.is_empty() {
            return Ok(PermissionResult::InForce);
        }
        let narrowed = is_narrow.then(|| describe_narrowing(&rules)).flatten();
        Ok(PermissionResult::Change(PolicyEdit::Allow(rules.into_iter().map(with_examples).collect()), narrowed))
    }

    fn rules_within(&self, words: &[Vec<String>]) -> Result<Vec<GrantRule>, String> {
        let mut lines: Vec<Vec<String>> = vec![Vec::new()];
        for alternatives in words {
            let longer = |line: &Vec<String>| {
                alternatives.iter().map(move |word| [line.as_slice(), std::slice::from_ref(word)].concat()).collect::<Vec<_>>()
            };
            lines = lines.iter().flat_map(longer).collect();
            if lines.len() > MAX_ALTERNATIVES {
                return Err(format!("the rule expands to more than {MAX_ALTERNATIVES} commands"));
            }
        }
        let mut rules = Vec::new();
        for mut line in lines {
            // A rule that can be saved has no wildcards, but the word without `*` matches the pattern.
            if let Some(last) = line.last_mut().filter(|last| last.ends_with('*')) {
                last.pop();
            }
            if line.last().is_some_and(String::is_empty) {
                return Err("the rule has a wildcard in place of a whole word".to_owned());
            }
            if line.first().is_some_and(|program| program.ends_with('/')) {
                return Err("the rule would allow every program in a directory".to_owned());
            }
            rules.extend(self.enforcer.rules_within(&line, &self.cwd(), self.now)?);
        }
        Ok(rules)
    }

    fn rules_for_paths(&self, patterns: &[String]) -> Result<Vec<GrantRule>, String> {
        let mut rules = Vec::new();
        for pattern in patterns {
            let folder =
                pattern.strip_suffix("/**").or_else(|| pattern.strip_suffix("/*")).filter(|folder| !folder.contains('*'));
            let (pattern, sample) = match (folder, pattern.rsplit_once("/**/*.")) {
                (Some(folder), _) => (folder, format!("{folder}/x")),
                (None, Some((folder, ending))) if !folder.contains('*') => (pattern.as_str(), format!("{folder}/x.{ending}")),
                (None, _) if !pattern.contains(['*', '?', '[', '{']) => (pattern.as_str(), pattern.clone()),
                (None, _) => {
                    return Err("a saved rule can only name a file, a folder, or one file type in a folder".to_owned());
                }
            };
            let Some(below) = sample.strip_prefix(WORKSPACE).and_then(|below| below.strip_prefix('/')) else {
                return Err("the rule matches files outside the workspace".to_owned());
            };
            let target = Target { given: below.to_owned(), real: self.workspace.join(below), place: Place::File { bytes: 0 } };
            rules.extend(self.enforcer.rules_for_paths(pattern, &target, self.now)?);
        }
        Ok(rules)
    }

    fn restrict(&self, permission: &Permission, verdict: VerdictKind) -> Result<PermissionResult, String> {
        let is_deny = verdict == VerdictKind::Deny;
        let reason = format!("imported from {}", self.agent.title());
        let rule = |subject, matches, not_matches| Restriction { subject, verdict, reason: reason.clone(), matches, not_matches };
        let command = |words, exact, matches, not_matches| {
            PolicyEdit::Restrict(vec![rule(RestrictionSubject::Command { words, exact }, matches, not_matches)])
        };
        let edit = match &permission.subject {
            Subject::Command(CommandPattern::Every) => command(vec![vec!["*".to_owned()]], false, Vec::new(), Vec::new()),
            Subject::Command(CommandPattern::Line(text)) => {
                let words = without_path(split_plain_command(text)?);
                let not_match = vec![format!("{} x", line(&words))];
                command(words.iter().map(|word| vec![word.clone()]).collect(), true, vec![line(&words)], not_match)
            }
            Subject::Command(CommandPattern::Beginning(words)) => {
                let words = without_paths(words);
                let first: Vec<String> = words.iter().map(|word| word[0].trim_end_matches('*').to_owned()).collect();
                let not_match = (first.len() > 1).then(|| line(&first[..first.len() - 1]));
                command(words, false, vec![line(&first)], not_match.into_iter().collect())
            }
            Subject::Command(CommandPattern::Other(why)) | Subject::Other(why) => return Err(why.clone()),
            Subject::Read(paths) => {
                let subject = RestrictionSubject::Paths { capability: "File.Read", paths: paths.clone() };
                PolicyEdit::Restrict(vec![rule(subject, Vec::new(), Vec::new())])
            }
            Subject::Write(paths) => {
                let of = |capability| RestrictionSubject::Paths { capability, paths: paths.clone() };
                let both = ["File.Write", "File.Delete"].map(|capability| rule(of(capability), Vec::new(), Vec::new()));
                PolicyEdit::Restrict(both.to_vec())
            }
            Subject::Server(server, tool) if permission.level == SettingsOwner::Project && is_deny => {
                let tools = RestrictionSubject::ServerTools(vec![server_tool(server, tool.as_deref())]);
                PolicyEdit::Restrict(vec![rule(tools, Vec::new(), Vec::new())])
            }
            Subject::Server(server, tool) if is_deny => {
                PolicyEdit::DisableTools(vec![format!("Mcp.{}", server_tool(server, tool.as_deref()))])
            }
            Subject::Search if !is_deny && self.allows_unasked_search() => {
                return Err("your policy allows web searches without approval: see `Network.Search`".to_owned());
            }
            // These actions need approval in any case.
            Subject::Server(..) | Subject::Web(_) | Subject::Search if !is_deny => return Ok(PermissionResult::InForce),
            Subject::Web(_) | Subject::Search | Subject::Tools(_) if permission.level == SettingsOwner::Project && is_deny => {
                return Err("only a policy for all projects can express this rule: see `blocked_domains` and `[tools] disabled`"
                    .to_owned());
            }
            Subject::Web(Some(domain)) => PolicyEdit::BlockDomains(vec![domain.clone()]),
            Subject::Web(None) => PolicyEdit::DisableTools(vec!["HttpRequest".to_owned()]),
            Subject::Search => PolicyEdit::DisableTools(vec!["WebSearch".to_owned()]),
            Subject::Tools(names) if is_deny => PolicyEdit::DisableTools(names.iter().map(|name| (*name).to_owned()).collect()),
            // Changes to files need approval in any case.
            Subject::Tools(names) if names.contains(&"WriteFile") => return Ok(PermissionResult::InForce),
            Subject::Tools(_) => return Err("a saved rule cannot require approval for every use of a tool".to_owned()),
            Subject::Server(..) => return Ok(PermissionResult::InForce),
        };
        Ok(PermissionResult::Change(edit, None))
    }

    /// Returns whether the policy allows web searches without requiring approval.
    fn allows_unasked_search(&self) -> bool {
        let (query, service) = ("aye".to_owned(), "Brave".to_owned());
        let search = Action::Search { query, domains: Vec::new(), service, host: String::new() };
        self.enforcer.explain(&[search], self.now).verdict == VerdictKind::Allow
    }

    fn cwd(&self) -> Target {
        Target { given: ".".to_owned(), real: self.workspace.to_owned(), place: Place::Directory }
    }
}

impl PolicyImport {
    fn count(&mut self, permission: &Permission, edit: &PolicyEdit, narrowed: Option<String>, is_same: bool) {
        if is_same && !matches!(edit, PolicyEdit::Restrict(rules) if rules.is_empty()) {
            self.in_force.push(permission.text.clone());
        } else {
            self.narrowed.extend(narrowed.map(|part| (permission.text.clone(), part)));
        }
    }
}

impl PolicyEdit {
    /// Returns the policy capability that the change affects, or `None` if it does not affect a single capability.
    fn capability(&self) -> Option<&str> {
        match self {
            Self::Allow(rules) => rules.first().map(|rule| rule.rule.capability()),
            Self::Restrict(rules) => rules.first().map(|rule| rule.subject.capability()),
            Self::DisableTools(_) => None,
            Self::BlockDomains(_) => Some("Network.Http"),
        }
    }

    /// Adds another change of the same kind to this one. Returns `false` if they cannot be made together.
    fn join(&mut self, other: &Self) -> bool {
        let has_same_capability = self.capability() == other.capability();
        match (self, other) {
            (Self::Allow(rules), Self::Allow(more)) if has_same_capability => rules.extend_from_slice(more),
            (Self::Restrict(rules), Self::Restrict(more)) => rules.extend_from_slice(more),
            (Self::DisableTools(names), Self::DisableTools(more)) => names.extend_from_slice(more),
            (Self::BlockDomains(domains), Self::BlockDomains(more)) => domains.extend_from_slice(more),
            _ => return false,
        }
        true
    }

    fn without_examples(&self) -> Self {
        let mut edit = self.clone();
        match &mut edit {
            Self::Allow(rules) => rules.iter_mut().for_each(|rule| (rule.matches, rule.not_matches) = Default::default()),
            Self::Restrict(rules) => rules.iter_mut().for_each(|rule| (rule.matches, rule.not_matches) = Default::default()),
            Self::DisableTools(_) | Self::BlockDomains(_) => {}
        }
        edit
    }
}

fn not_imported(permission: &Permission, reason: String) -> Unsupported {
    let verdict = permission.verdict.as_str();
    Unsupported { place: permission.place.clone(), entry: format!("{verdict} {}", permission.text), reason }
}

/// Checks that aye will be able to read a policy file when it next starts.
pub(super) fn is_valid(text: &str, level: SettingsOwner) -> Result<(), String> {
    let parsed = match level {
        SettingsOwner::User => Bundle::parse(text, "policy.toml"),
        SettingsOwner::Project => Bundle::parse_rules(text, "policy.toml"),
    };
    parsed.map(drop).map_err(|error| error.to_string())
}

fn server_tool(server: &str, tool: Option<&str>) -> String {
    format!("{server}/{}", tool.unwrap_or("*"))
}

/// Removes directories from program names, because command rules apply to a program regardless of its directory.
fn without_path(words: Vec<String>) -> Vec<String> {
    let bare = |word: String| word.rsplit('/').next().filter(|name| !name.is_empty()).map_or_else(|| word.clone(), str::to_owned);
    let mut words = words.into_iter();
    words.next().map(bare).into_iter().chain(words).collect()
}

fn without_paths(words: &[Vec<String>]) -> Vec<Vec<String>> {
    let mut words = words.to_vec();
    for program in words.iter_mut().take(1).flatten() {
        if let Some(name) = program.rsplit('/').next().filter(|name| !name.is_empty()) {
            *program = name.to_owned();
        }
    }
    words
}

/// Describes what the rules allow, if they match only some of the commands that the original pattern matched.
fn describe_narrowing(rules: &[GrantRule]) -> Option<String> {
    let one = |rule: &GrantRule| match rule {
        GrantRule::Command(CommandRule { words, exact, sandboxed, message, .. }) => {
            let what = match (exact, message) {
                (true, _) => format!("exactly `{}`", line(words)),
                (false, true) => format!("`{}` with any message", line(words)),
                (false, false) => format!("`{}` with any arguments", line(words)),
            };
            let place = if *sandboxed { ", in a copy of the workspace" } else { "" };
            (*exact || *message || *sandboxed).then(|| format!("{what}{place}"))
        }
        GrantRule::Tool { .. }
        | GrantRule::ServerTool { .. }
        | GrantRule::BackendTool { .. }
        | GrantRule::Write { .. }
        | GrantRule::Readable { .. } => None,
    };
    let parts: Vec<String> = rules.iter().filter_map(one).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Adds examples of commands that the rule matches, and of commands that it does not match.
fn with_examples(rule: GrantRule) -> RuleWithExamples {
    let GrantRule::Command(command) = &rule else {
        return RuleWithExamples { rule, matches: Vec::new(), not_matches: Vec::new() };
    };
    let (mut matches, mut not_matches) = command.examples();
    if matches.is_empty() && command.hosts.is_empty() {
        matches = vec![line(&command.words)];
        not_matches = match command.words.split_last() {
            _ if command.exact => vec![format!("{} x", line(&command.words))],
            Some((_, shorter)) if !shorter.is_empty() => vec![line(shorter)],
            Some(_) | None => Vec::new(),
        };
    }
    RuleWithExamples { rule, matches, not_matches }
}
