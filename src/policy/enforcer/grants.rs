//! "Always allow": derives the narrowest rule that would allow an action, and applies the rules that the user saved.

use super::Enforcer;
use crate::policy::bundle::{Bundle, BundleError, SandboxSetting};
use crate::policy::command::{self, CommandContext, SavablePart};
use crate::policy::git::without_messages;
use crate::policy::host_access::{is_download, never_reaches};
use crate::policy::interpreters::{self, RunnerKind};
use crate::policy::layer::{Layer, Scope, is_managed_rule};
use crate::policy::named::line;
use crate::policy::paths::{Sandbox, literal};
use crate::policy::permit::Grant;
use crate::policy::shell::{Arg, is_deceptive_name};
use crate::protocol::{
    Action, ApproveWhen, BACKEND_SERVER, CommandRule, GrantOption, GrantOptions, GrantRule, GrantScope, Mode, SandboxAccess,
    Target, VerdictKind,
};
use jiff::Timestamp;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NO_COPY: &str = "rules for interpreters and task runners require a sandbox, but this system has none";
pub(super) const ALREADY_IN_A_COPY: &str = "aye runs this command in a copy of the workspace without asking; only its changes need approval, and no rule can cover \
    changes";
/// Validity periods, in days, that are offered for a saved rule.
const DAYS: [u32; 3] = [1, 7, 30];
const DAY_SECONDS: i64 = 86_400;
/// Programs whose first argument is a subcommand. A rule without the subcommand would also allow risky subcommands.
pub(super) const WITH_SUBCOMMANDS: &[&str] = &[
    "bazel",
    "bundle",
    "cargo",
    "composer",
    "dart",
    "dotnet",
    "flutter",
    "git",
    "go",
    "gradle",
    "just",
    "mise",
    "mix",
    "mvn",
    "npm",
    "nx",
    "pnpm",
    "poetry",
    "rails",
    "rake",
    "rustup",
    "stack",
    "swift",
    "terraform",
    "turbo",
    "uv",
    "yarn",
    "zig",
];
/// Options of `git commit` that a rule for any commit message may contain.
const QUIET_COMMIT: &[&str] = &["-a", "--all", "-q", "--quiet", "-s", "--signoff", "-v", "--verbose"];
/// Maximum length of a subcommand in bytes.
const SUBCOMMAND_BYTES: usize = 32;

impl Enforcer {
    /// Returns the rules that "always allow" can offer for these actions, ordered from narrowest to widest. If there
    /// are none, returns the reason.
    pub fn always(&self, actions: &[Action], now: Timestamp) -> GrantOptions {
        let mut always = self.may_always(actions, now);
        for why in &mut always.never {
            *why = self.stack.with_bundle_names(why);
        }
        always
    }

    /// Returns the rule that would permit every command in this project to read these directories, which the sandbox
    /// hid.
    pub fn always_readable(&self, paths: &[&Path], now: Timestamp) -> GrantOptions {
        let never = |path: &Path, why: &str| GrantOptions {
            never: vec![format!("`{}` {why}", path.display())],
            ..GrantOptions::default()
        };
        let context = &self.context;
        let mut rules = Vec::new();
        for path in paths {
            let holds = |place: &PathBuf| place.starts_with(path);
            let is_wide = holds(&context.home) || context.roots.iter().chain(&context.own).any(holds);
            let text = path.to_str().filter(|text| !is_deceptive_name(text));
            let (Some(text), false, true) = (text, is_wide, self.can_open_for_read(path)) else {
                return never(path, "cannot be saved as readable");
            };
            rules.push(GrantRule::Readable { path: text.to_owned() });
        }
        let rules = unique(rules.into_iter());
        let Ok(bundle) = Bundle::parse_rules(&text(&rules), "the rule") else { return GrantOptions::default() };
        let mut trial = self.clone();
        Arc::make_mut(&mut trial.stack).push(Layer::new(Scope::Mine, bundle), &trial.context);
        let readable = trial.sandbox_requirements(&[], now).readable;
        if let Some(path) = paths.iter().find(|path| !readable.iter().any(|place| place == *path)) {
            return never(path, "would remain hidden, because your policy does not let a project add this path");
        }
        let offer = GrantOption {
            rules,
            everywhere: Vec::new(),
            written: false,
            memory_only: None,
            file_only: false,
            asks_still: Vec::new(),
            places: Vec::new(),
        };
        GrantOptions { offers: vec![offer], ..GrantOptions::default() }
    }

    /// Returns the rule that would permit this command to connect to these hosts without a prompt when it runs in a
    /// copy of the workspace.
    pub fn always_hosts(&self, actions: &[Action], hosts: &[SandboxAccess], now: Timestamp) -> GrantOptions {
        let never = |why: String| GrantOptions { never: vec![why], ..GrantOptions::default() };
        let Some((exec @ Action::Exec { command, cwd }, true)) =
            actions.first().zip(Some(hosts.iter().all(|host| matches!(host, SandboxAccess::Host { .. }))))
        else {
            return never("only access by a single command to specific hosts can be saved".to_owned());
        };
        let mut argv = None;
        command::only_command(command, cwd, &self.scene(cwd, now), |_, part, _| argv = Some(part.invocations[0].argv.clone()));
        let Some(argv) = argv else { return never("hosts can be saved only for a line with a single command".to_owned()) };
        if let Some(why) = never_reaches(&argv) {
            return never(format!("`{}` {why}, so its hosts cannot be saved", argv[0].text.replace('\0', "…")));
        }
        let words: Vec<String> = argv.iter().map(|arg| arg.text.clone()).collect();
        let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
        if words.iter().chain(&hosts).any(|text| is_deceptive_name(text)) {
            return never("the command contains invisible characters".to_owned());
        }
        let prefix = is_download(&argv).then(|| CommandRule::with_prefix(words[..2].to_vec()));
        let mut why = String::new();
        for rule in prefix.into_iter().chain([CommandRule::exact(words)]) {
            let rules = vec![GrantRule::Command(CommandRule { sandboxed: true, hosts: hosts.clone(), ..rule })];
            match self.offer_hosts(rules, exec, now) {
                Ok(offer) => return GrantOptions { offers: vec![offer], ends: expiry_choices(now), ..GrantOptions::default() },
                Err(reason) => why = reason,
            }
        }
        never(why)
    }

    /// Checks that these rules permit the command to connect to their hosts, and returns them as an offer.
    pub(super) fn offer_hosts(&self, rules: Vec<GrantRule>, exec: &Action, now: Timestamp) -> Result<GrantOption, String> {
        let bundle = Bundle::parse_rules(&text(&rules), "the rule").map_err(|error| error.message)?;
        let mut trial = self.clone();
        Arc::make_mut(&mut trial.stack).push(Layer::new(Scope::Mine, bundle), &trial.context);
        let reached: Vec<String> = trial.explain(std::slice::from_ref(exec), now).hosts.iter().map(ToString::to_string).collect();
        let wanted = rules.iter().flat_map(|rule| match rule {
            GrantRule::Command(rule) => rule.hosts.as_slice(),
            _ => &[],
        });
        let mut wanted = wanted.peekable();
        if wanted.peek().is_none() || !wanted.all(|host| reached.contains(host)) {
            return Err("a rule would have no effect on this command".to_owned());
        }
        let everywhere = rules.clone();
        Ok(GrantOption {
            rules,
            everywhere,
            written: false,
            memory_only: None,
            file_only: false,
            asks_still: Vec::new(),
            places: Vec::new(),
        })
    }

    fn may_always(&self, actions: &[Action], now: Timestamp) -> GrantOptions {
        let found = match actions {
            [Action::Exec { command, cwd }] => self.for_command(command, cwd, now),
            [Action::Custom { name, fingerprint, .. }] => {
                Ok(vec![GrantDraft::with_rules(vec![GrantRule::Tool { name: name.clone(), fingerprint: fingerprint.clone() }])])
            }
            // A name with a wildcard would match further tools.
            [Action::Invoke { server, tool, fingerprint, .. }] if !format!("{server}{tool}").contains(['*', '?']) => {
                let fingerprint = fingerprint.clone();
                let rule = if server == BACKEND_SERVER {
                    GrantRule::BackendTool { name: tool.clone(), fingerprint }
                } else {
                    GrantRule::ServerTool { name: format!("{server}/{tool}"), fingerprint }
                };
                Ok(vec![GrantDraft::with_rules(vec![rule])])
            }
            _ => self.for_writes(actions, now),
        };
        let drafts = match found {
            Ok(drafts) => drafts,
            Err(never) => return GrantOptions { never, ..GrantOptions::default() },
        };
        let mut always = GrantOptions::default();
        for draft in drafts {
            match self.offer(draft, actions, now) {
                Ok(offer) => always.offers.push(offer),
                // If the narrowest rule has no effect, the reason is reported. A wider rule without effect is omitted.
                Err(why) if always.offers.is_empty() => {
                    always.never.push(why);
                    return always;
                }
                Err(_) => {}
            }
        }
        always.ends = expiry_choices(now);
        always
    }

    /// Applies a rule on trial and returns it as an offer. A rule that has no effect is not offered.
    pub(super) fn offer(&self, draft: GrantDraft, actions: &[Action], now: Timestamp) -> Result<GrantOption, String> {
        let is_for_a_copy = draft.rules.iter().any(|rule| matches!(rule, GrantRule::Command(rule) if rule.sandboxed));
        let with = |rules: &[GrantRule], scope: Scope, sandbox: Sandbox| {
            let bundle = Bundle::parse_rules(&text(rules), "the rule").map_err(|error| error.message)?;
            let mut trial = self.clone();
            trial.context.mode = Mode::Ask;
            trial.context.sandbox = sandbox;
            trial.grants.clear();
            trial.mandate.clear();
            Arc::make_mut(&mut trial.stack).push(Layer::new(scope, bundle), &trial.context);
            let told = trial.explain(actions, now);
            match told.verdict {
                VerdictKind::Allow => Ok(()),
                VerdictKind::Ask if told.approve == Some(ApproveWhen::Effects) && is_for_a_copy => Ok(()),
                VerdictKind::Ask | VerdictKind::Deny => Err(format!("{} ({})", told.reason, told.rule)),
            }
        };
        if is_for_a_copy && self.context.sandbox == Sandbox::Absent {
            return Err(NO_COPY.to_owned());
        }
        if is_for_a_copy && self.explain(actions, now).approve == Some(ApproveWhen::Effects) {
            return Err(ALREADY_IN_A_COPY.to_owned());
        }
        let lasting = with(&draft.rules, Scope::Mine, Sandbox::Present)
            .and_then(|()| with(&draft.everywhere, Scope::Mine, Sandbox::Present));
        if let (Err(why), false) = (&lasting, draft.in_memory) {
            return Err(format!("a rule would have no effect: {why}"));
        }
        let real = self.context.sandbox;
        let mut asks_still = Vec::new();
        if lasting.is_ok() && with(&draft.rules, Scope::Mine, real).is_err() {
            asks_still.push(GrantScope::Project);
        }
        // Without a sandbox, only rules for one project apply: in another project, the same command may do something
        // else.
        let unheld = real == Sandbox::Absent && self.sandbox() != SandboxSetting::Off;
        if lasting.is_ok() && unheld && actions.iter().any(|action| matches!(action, Action::Exec { .. } | Action::Custom { .. }))
        {
            asks_still.push(GrantScope::Everywhere);
        }
        let memory_only = lasting.err().map(|why| format!("a saved rule would have no effect: {why}"));
        let GrantDraft { rules, everywhere, .. } = draft;
        Ok(GrantOption { rules, everywhere, written: false, memory_only, file_only: false, asks_still, places: Vec::new() })
    }

    fn for_command(&self, line: &str, cwd: &Target, now: Timestamp) -> Result<Vec<GrantDraft>, Vec<String>> {
        let scene = self.scene(cwd, now);
        let asking = command::parts_needing_approval(line, cwd, &scene, |rule| self.stack.is_user_decision(rule))?;
        if asking.is_empty() {
            return Err(vec!["each command in the line is already allowed, so a rule would have no effect".to_owned()]);
        }
        let narrow: Vec<GrantRule> = unique(asking.iter().map(|one| GrantRule::Command(narrowest_rule(one))));
        // No grant in memory matches words that the shell expands.
        let in_memory = !asking.iter().any(|one| one.in_a_copy || one.argv.iter().any(command::is_expanded));
        let mut drafts = vec![GrantDraft { in_memory, ..GrantDraft::with_rules(narrow.clone()) }];
        let wide = unique(asking.iter().map(|one| GrantRule::Command(widen_rule(one).unwrap_or_else(|| narrowest_rule(one)))));
        if wide != narrow && wide.iter().all(|rule| covers_only_harmless(rule, &scene)) {
            drafts.push(GrantDraft::with_rules(wide));
        }
        Ok(drafts)
    }

    fn for_writes(&self, actions: &[Action], now: Timestamp) -> Result<Vec<GrantDraft>, Vec<String>> {
        let mut paths = Vec::new();
        let mut never = Vec::new();
        for action in actions {
            let told = self.explain(std::slice::from_ref(action), now);
            if told.verdict == VerdictKind::Allow {
                continue;
            }
            let given = |target: &Target| target.given.clone();
            match (action, &told.remember) {
                (Action::Write { target }, Some(Grant::Write { path })) if !is_deceptive_name(&path.to_string_lossy()) => {
                    match path.to_str() {
                        Some(_) => paths.push(path.clone()),
                        None => never.push(format!("the name of `{}` is not valid UTF-8", given(target))),
                    }
                }
                (Action::Delete { target }, _) => never.push(format!("deletes `{}`", given(target))),
                (Action::Read { target } | Action::Write { target }, _) => {
                    never.push(format!("`{}`: {}", given(target), locked_reason(&told.rule, &told.reason)));
                }
                (Action::Named { name, .. }, _) => {
                    never.push(format!(
                        "the named command `{name}` needs approval until its policy sets `requires_approval = false`"
                    ));
                }
                (Action::Open { target }, _) => {
                    never.push(format!("opening `{}` outside the sandbox needs approval each time", given(target)));
                }
                (Action::Upload { target }, _) => {
                    never.push(format!("uploading `{}` needs approval each time", given(target)));
                }
                (Action::Fetch { .. }, _) => never.push("each request needs its own approval".to_owned()),
                (Action::Search { .. }, _) => never.push("each web search needs its own approval".to_owned()),
                (Action::Exec { .. } | Action::Custom { .. } | Action::Invoke { .. }, _) => {
                    never.push(format!("each {} needs its own approval", action.capability()));
                }
            }
        }
        if !never.is_empty() {
            return Err(never);
        }
        let all = |pattern: &dyn Fn(&Path) -> Option<PathBuf>, suffix: &dyn Fn(&Path) -> Option<String>| -> Option<GrantDraft> {
            let mut here = Vec::new();
            let mut everywhere = Vec::new();
            for path in &paths {
                let (base, suffix) = (pattern(path)?, suffix(path)?);
                let absolute = format!("{}{suffix}", literal(base.to_str()?));
                here.push(self.workspace_pattern(&base, &suffix).unwrap_or_else(|| absolute.clone()));
                everywhere.push(absolute);
            }
            let rule = |paths: Vec<String>| vec![GrantRule::Write { paths: unique(paths.into_iter()) }];
            Some(GrantDraft { rules: rule(here), everywhere: rule(everywhere), in_memory: false })
        };
        let below_root = |path: &Path| -> Option<PathBuf> {
            let folder = path.parent()?;
            let inside = self.context.roots.iter().any(|root| folder.starts_with(root) && folder != root);
            inside.then(|| folder.to_owned())
        };
        let kind = |path: &Path| {
            let extension = path.extension()?.to_str()?;
            extension.bytes().all(|byte| byte.is_ascii_alphanumeric()).then(|| format!("/**/*.{extension}"))
        };
        let none = |_: &Path| Some(String::new());
        let file = |path: &Path| Some(path.to_owned());
        Ok([all(&file, &none), all(&below_root, &kind), all(&below_root, &none)].into_iter().flatten().collect())
    }

    /// Returns a pattern relative to the workspace, or `None` if the workspace has several roots or `base` is outside
    /// of it.
    fn workspace_pattern(&self, base: &Path, suffix: &str) -> Option<String> {
        let [root] = self.context.roots.as_slice() else { return None };
        let below = base.strip_prefix(root).ok()?.to_str()?;
        let slash = if below.is_empty() { "" } else { "/" };
        Some(format!("${{workspace}}{slash}{}{suffix}", literal(below)))
    }

    /// Applies rules until aye exits. Exact commands are allowed only in `directory`, in which they were approved.
    pub fn keep(&mut self, rules: &[GrantRule], directory: Option<PathBuf>) -> Result<(), BundleError> {
        let mut others = Vec::new();
        for rule in rules {
            match (rule, &directory) {
                (GrantRule::Command(CommandRule { words, exact: true, sandboxed: false, .. }), Some(directory)) => {
                    self.grant(Grant::Command { words: words.clone(), directory: directory.clone() });
                }
                _ => others.push(rule.clone()),
            }
        }
        if !others.is_empty() {
            let bundle = Bundle::parse_rules(&text(&others), "the rule")?;
            Arc::make_mut(&mut self.stack).push(Layer::new(Scope::Session, bundle), &self.context);
        }
        Ok(())
    }

    pub(super) fn grant(&mut self, grant: Grant) {
        if !self.grants.contains(&grant) {
            self.grants.push(grant);
        }
    }

    /// Removes the most recent grants that `keep` created from the same rules in this run.
    pub fn ungrant(&mut self, rules: &[GrantRule], directory: Option<&Path>) {
        for rule in rules {
            if let (GrantRule::Command(CommandRule { words, exact: true, sandboxed: false, .. }), Some(directory)) =
                (rule, directory)
            {
                let gone = Grant::Command { words: words.clone(), directory: directory.to_owned() };
                self.grants.retain(|grant| *grant != gone);
            } else if Arc::make_mut(&mut self.stack).remove_last_grant(&self.context) {
                break;
            }
        }
    }

    /// Replaces one of the user's policy files in memory.
    pub fn replace_user_layer(&mut self, layer: Option<Layer>, scope: GrantScope) {
        Arc::make_mut(&mut self.stack).replace_user_layer(layer, scope, &self.context);
    }
}

/// Returns the expiry times that are offered for a saved rule, each with its period in days.
fn expiry_choices(now: Timestamp) -> Vec<(u32, Timestamp)> {
    let end = |days: u32| Timestamp::from_second(now.as_second() + i64::from(days) * DAY_SECONDS);
    DAYS.iter().filter_map(|days| Some((*days, end(*days).ok()?))).collect()
}

/// Rules that may be offered together.
pub(super) struct GrantDraft {
    pub rules: Vec<GrantRule>,
    pub everywhere: Vec<GrantRule>,
    /// Whether the rules may be applied until aye exits even if saving them would have no effect.
    pub in_memory: bool,
}

impl GrantDraft {
    fn with_rules(rules: Vec<GrantRule>) -> Self {
        Self { everywhere: rules.clone(), rules, in_memory: false }
    }
}

/// Formats rules as the text of a policy file.
pub(super) fn text(rules: &[GrantRule]) -> String {
    let mut text = "schema_version = 1\n".to_owned();
    let readable = |rule: &GrantRule| match rule {
        GrantRule::Readable { path } => Some(path.clone()),
        _ => None,
    };
    let paths: Vec<String> = rules.iter().filter_map(readable).collect();
    if !paths.is_empty() {
        let _ = writeln!(text, "[capabilities.\"Shell.Exec\"]\nreadable_paths = {}", toml::Value::from(paths));
    }
    for rule in rules.iter().filter(|rule| readable(rule).is_none()) {
        let _ =
            write!(text, "[[capabilities.\"{}\".rules]]\n{}\ndecision = \"allow\"\n", rule.capability(), rule.keys().join("\n"));
    }
    text
}

/// Returns whether a rule that allows any command with a given prefix excludes all commands that always need approval.
pub(super) fn covers_only_harmless(rule: &GrantRule, scene: &CommandContext<'_>) -> bool {
    match rule {
        GrantRule::Command(rule) if !rule.exact => command::can_be_saved(&line(&rule.words), scene, rule.sandboxed),
        GrantRule::Command(_)
        | GrantRule::Tool { .. }
        | GrantRule::ServerTool { .. }
        | GrantRule::BackendTool { .. }
        | GrantRule::Write { .. }
        | GrantRule::Readable { .. } => true,
    }
}

/// Returns the rule for exactly the words of a command. If the command is a commit with a message, the rule allows any
/// message.
fn narrowest_rule(kept: &SavablePart) -> CommandRule {
    let texts = |argv: &[Arg]| argv.iter().map(|arg| arg.text.clone()).collect();
    match without_messages(&kept.argv).filter(|words| words.len() < kept.argv.len()) {
        Some(words) if words[2..].iter().all(|word| QUIET_COMMIT.contains(&word.text.as_str())) => {
            CommandRule { words: texts(&words), message: true, ..CommandRule::default() }
        }
        _ => CommandRule { sandboxed: kept.in_a_copy, ..CommandRule::exact(texts(&kept.argv)) },
    }
}

/// Returns the rule that allows a program and its subcommand with any arguments. For an interpreter, returns the rule
/// for its script or module.
fn widen_rule(kept: &SavablePart) -> Option<CommandRule> {
    let words: Vec<String> = kept.argv.iter().map(|arg| arg.text.clone()).collect();
    if kept.in_a_copy {
        let is_interpreter = interpreters::kind(&words[0]) == Some(RunnerKind::Interpreter);
        let count = interpreters::program_word_count(&kept.argv).ok().filter(|_| is_interpreter)?;
        return Some(CommandRule { sandboxed: true, ..CommandRule::with_prefix(words.get(..count)?.to_vec()) });
    }
    if narrowest_rule(kept).message {
        return None;
    }
    let [program, first, ..] = words.as_slice() else { return None };
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_:".contains(letter);
    let is_subcommand = first.len() <= SUBCOMMAND_BYTES
        && first.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && first.chars().all(plain)
        && WITH_SUBCOMMANDS.contains(&program.as_str());
    is_subcommand.then(|| CommandRule::with_prefix(vec![program.clone(), first.clone()]))
}

/// Explains that a rule or a protected path prevents a rule from being saved, or a plan from allowing an action.
pub(crate) fn locked_reason(rule: &str, reason: &str) -> String {
    if is_managed_rule(rule) { format!("locked by {rule}: {reason}") } else { format!("{reason} ({rule})") }
}

fn unique<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut kept = Vec::new();
    for one in all {
        if !kept.contains(&one) {
            kept.push(one);
        }
    }
    kept
}
