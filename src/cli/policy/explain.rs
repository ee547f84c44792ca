//! `aye policy explain`: explains the verdict on a command or tool call, including the rule and the reason.

use super::args::ExplainSubject;
use super::origin::{Origins, RuleLocation};
use super::paint::{OutputStyle, OutputTone};
use super::server_tools::ServerTools;
use crate::cli::tool;
use crate::host::console::{print_json, print_text};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::options::Common;
use crate::host::policy_error::number_line;
use crate::host::project::ProjectConfig;
use crate::host::sandbox_host::SandboxHost;
use crate::policy::{Explanation, Sandbox};
use crate::protocol::{Action, ApproveWhen, CallArguments, Mode, Risk, VerdictKind};
use crate::text::quoted_line;
use crate::tools;
use serde::Serialize;
use std::path::PathBuf;

/// Verdicts on a call, both according to the rules alone and in the current environment, with the locations of the
/// rules.
pub(crate) struct ExplainedCall {
    /// Verdict according to the rules alone, assuming that there is a sandbox.
    pub by_rules: Explanation,
    /// Verdict in the current environment.
    pub now: Explanation,
    pub mode: Mode,
    pub steps: Vec<Step>,
    /// Names and locations of the rules, without duplicates. The rule that determined the verdict comes first, followed
    /// by the rules of the steps.
    pub origins: Vec<(String, Option<RuleLocation>)>,
}

/// A simple command in a shell command line, or an action of a call.
pub(crate) struct Step {
    pub text: String,
    pub verdict: VerdictKind,
    pub rule: String,
    pub reason: String,
    pub risk: Risk,
    pub critical: bool,
}

pub(crate) fn run(app: &AppContext, common: &Common, subject: ExplainSubject, json: bool) -> Result<Exit, CliError> {
    let (name, arguments) = match subject {
        ExplainSubject::Command { words, cwd } => ("RunCommand".to_owned(), command(&words, cwd)),
        ExplainSubject::Call { tool, arguments } => {
            let arguments = tool::tool_call(&tool, &arguments)?.arguments;
            (tool, arguments)
        }
    };
    let policy = super::load_policy(app, common)?;
    let app = &super::with_tools(app, common);
    let enforcer = app.enforcer(&policy, Sandbox::Present, app.mode);
    let toolset = super::toolset(app, &enforcer);
    let servers =
        ServerTools::from_config(app, Some(&ProjectConfig::inspect(&app.workspace, &app.directories.config, common.trust)));
    let time = jiff::Timestamp::now();
    let (actions, by_rules) = super::judge_call(&name, &arguments, &enforcer, &toolset, &servers).map_err(CliError::usage)?;
    let now = if actions.is_empty() {
        by_rules.clone()
    } else {
        // If the current paths cannot be determined, as for a dangling symlink, the call is evaluated by its arguments.
        let found = toolset.actions_now(&name, &arguments).unwrap_or_else(|_| actions.clone());
        app.enforcer(&policy, SandboxHost::find(app, tools::RepositoryTrust::Untrusted).sandbox(), app.mode).explain(&found, time)
    };
    let steps = steps(&by_rules, &actions, |action| enforcer.explain(std::slice::from_ref(action), time));
    let origins = Origins::from_policy(&policy);
    let mut rules = vec![by_rules.rule.clone()];
    rules.extend(steps.iter().map(|step| step.rule.clone()));
    let mut seen = Vec::new();
    rules.retain(|rule| {
        !seen.contains(rule) && {
            seen.push(rule.clone());
            true
        }
    });
    let origins = rules.into_iter().map(|rule| (rule.clone(), origins.find(&rule))).collect();
    let account = ExplainedCall { by_rules, now, mode: app.mode, steps, origins };
    if json {
        print_json(&account.as_json());
    } else {
        print_text(&account.as_text(&OutputStyle::for_stdout(common.color)));
    }
    Ok(Exit::Completed)
}

fn command(words: &[String], cwd: Option<String>) -> CallArguments {
    let mut arguments = serde_json::Map::new();
    arguments.insert("command".to_owned(), quoted_line(words).into());
    arguments.extend(cwd.map(|cwd| ("cwd".to_owned(), cwd.into())));
    CallArguments::Object(arguments)
}

/// Returns the commands in a shell command line, or the actions of a call.
pub(crate) fn steps(whole: &Explanation, actions: &[Action], explain: impl Fn(&Action) -> Explanation) -> Vec<Step> {
    if !whole.parts.is_empty() {
        let step = |part: &crate::protocol::CommandPart| Step {
            text: part.text.clone(),
            verdict: part.verdict,
            rule: part.rule.clone(),
            reason: part.reason.clone(),
            risk: part.risk,
            critical: part.critical,
        };
        return whole.parts.iter().map(step).collect();
    }
    let step = |action: &Action| {
        let told = explain(action);
        Step {
            text: describe_action(action),
            verdict: told.verdict,
            rule: told.rule,
            reason: told.reason,
            risk: told.risk,
            critical: told.critical,
        }
    };
    actions.iter().map(step).collect()
}

fn describe_action(action: &Action) -> String {
    match action {
        Action::Read { target } => format!("read {}", target.given),
        Action::Write { target } => format!("write {}", target.given),
        Action::Delete { target } => format!("delete {}", target.given),
        Action::Exec { command, .. } => command.clone(),
        Action::Fetch { url, method } => format!("{method} {url}"),
        Action::Search { query, .. } => format!("search the web for “{query}”"),
        Action::Open { target } => format!("open {}", target.given),
        Action::Upload { target } => format!("upload {}", target.given),
        Action::Named { argv, .. } | Action::Custom { argv, .. } => argv.join(" "),
        Action::Invoke { server, tool, .. } => format!("call {server}/{tool}"),
    }
}

/// JSON output of `aye policy explain`, including the context in which the call was judged.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExplainOutput<'a> {
    #[serde(flatten)]
    explanation: &'a Explanation,
    mode: Mode,
    /// File that contains the rule that determined the verdict; absent for a built-in rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    /// Source text of the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    at_run_time: RuntimeVerdict<'a>,
}

#[derive(Serialize)]
struct RuntimeVerdict<'a> {
    verdict: VerdictKind,
    rule: &'a str,
    reason: &'a str,
}

impl ExplainedCall {
    pub(crate) fn as_json(&self) -> ExplainOutput<'_> {
        let origin = self.origins.first().and_then(|(_, origin)| origin.as_ref());
        ExplainOutput {
            explanation: &self.by_rules,
            mode: self.mode,
            file: origin.map(|origin| origin.file.clone()),
            line: origin.map(|origin| origin.line),
            source: origin.map(|origin| origin.source.join("\n")),
            at_run_time: RuntimeVerdict { verdict: self.now.verdict, rule: &self.now.rule, reason: &self.now.reason },
        }
    }

    pub(crate) fn as_text(&self, paint: &OutputStyle) -> String {
        let mut rows = self.head(paint);
        rows.push(String::new());
        rows.extend(self.table(paint));
        rows.push(String::new());
        for (at, (rule, origin)) in self.origins.iter().enumerate() {
            rows.extend(rule_rows(rule, origin.as_ref(), at == 0, paint));
        }
        rows.extend(self.notes().into_iter().flat_map(|note| note_rows(&note, paint)));
        rows.join("\n") + "\n"
    }

    fn head(&self, paint: &OutputStyle) -> Vec<String> {
        let told = &self.by_rules;
        let critical = if told.critical { ", critical" } else { "" };
        let plain = format!("{} · {} risk{critical} · ", told.verdict.as_str(), told.risk.as_str());
        let mut sentence = paint.wrap_sentence(&format!("{plain}{}", told.reason), 0).into_iter();
        let first = sentence.next().unwrap_or_default();
        let rest = first.strip_prefix(told.verdict.as_str()).unwrap_or_default().to_owned();
        let mut rows = vec![format!("{}{rest}", paint.verdict(told.verdict, 0))];
        rows.extend(sentence);
        if self.now.verdict != told.verdict || (self.now.reason != told.reason && self.now.rule != told.rule) {
            let text = format!("at run time: {} · {}", self.now.verdict.as_str(), self.now.reason);
            let mut lines = paint.wrap_sentence(&text, 0).into_iter();
            rows.extend(lines.next().map(|line| paint.tone(OutputTone::Careful, &line)));
            rows.extend(lines);
        }
        rows
    }

    fn table(&self, paint: &OutputStyle) -> Vec<String> {
        let number = self.steps.len().to_string().len();
        let rule = self.steps.iter().map(|step| crate::text::width(&step.rule)).max().unwrap_or_default().min(24);
        let risks = if self.steps.iter().any(|step| step.critical) { 8 } else { 6 };
        let indent = 2 + number + 2 + 5 + 2 + risks + 2 + rule + 2;
        let mut rows = Vec::new();
        for (at, step) in self.steps.iter().enumerate() {
            let mut code = paint.code(&step.text, indent).into_iter();
            let first = code.next().unwrap_or_default();
            rows.push(format!(
                "  {:>number$}  {}  {}  {}  {}",
                at + 1,
                paint.verdict(step.verdict, 5),
                paint.risk(step.risk, step.critical, risks),
                OutputStyle::cell(&step.rule, rule),
                paint.tone(OutputTone::Strong, &first)
            ));
            let blank = " ".repeat(indent);
            rows.extend(code.map(|row| format!("{blank}{}", paint.tone(OutputTone::Strong, &row))));
            if self.steps.len() > 1 || step.reason != self.by_rules.reason {
                rows.extend(
                    paint
                        .wrap_sentence(&step.reason, indent)
                        .into_iter()
                        .map(|row| format!("{blank}{}", paint.tone(OutputTone::Quiet, &row))),
                );
            }
        }
        rows
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.by_rules.needs.is_some() {
            let until = if self.now.verdict == VerdictKind::Ask {
                "without one, approval is required at run time"
            } else {
                "allowed only in a sandbox"
            };
            notes.push(format!("needs a sandbox: {until}"));
        }
        if self.by_rules.approve == Some(ApproveWhen::Effects) {
            notes.push(
                "approved by effects: the command runs in a copy first, and aye asks only if it would change files".to_owned(),
            );
        }
        if !self.by_rules.hosts.is_empty() {
            let hosts: Vec<String> = self.by_rules.hosts.iter().map(ToString::to_string).collect();
            notes.push(format!("can reach {} in the copy without asking", hosts.join(", ")));
        }
        if self.mode != Mode::Ask {
            notes.push(format!("evaluated for --mode {}", self.mode.as_str()));
        }
        notes
    }
}

fn rule_rows(rule: &str, origin: Option<&RuleLocation>, decides: bool, paint: &OutputStyle) -> Vec<String> {
    let label = if decides { "decided by" } else { "and" };
    let Some(origin) = origin else {
        let whose = match rule {
            "built-in" => "the built-in policy",
            "session" => "you, for this session",
            other => other,
        };
        return vec![format!("{label:10} {whose}")];
    };
    let mut rows = vec![format!("{label:10} {}", paint.tone(OutputTone::Strong, &crate::text::reveal(&origin.location())))];
    let numbered = origin.source.iter().enumerate().map(|(at, line)| number_line(origin.line + at, line));
    rows.extend(numbered.map(|line| paint.tone(OutputTone::Quiet, &crate::text::truncate(&line, paint.width))));
    rows
}

fn note_rows(note: &str, paint: &OutputStyle) -> Vec<String> {
    let mut rows = paint.wrap_sentence(note, 11).into_iter();
    let first = rows.next().unwrap_or_default();
    std::iter::once(format!("{:10} {first}", "note")).chain(rows.map(|row| format!("{:11}{row}", ""))).collect()
}
