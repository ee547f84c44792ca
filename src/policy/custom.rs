//! Verdicts on custom tools. They are judged like commands, except that each tool needs approval until a rule allows it
//! by name.

use super::bundle::{RuleDecision, ToolRule};
use super::command::{self, CommandContext};
use super::layer::{CompiledLayer, ScopedRule, is_in_effect};
use super::layer_verdict::{ActionFinding, LayerVerdict, reason};
use super::named::line;
use super::paths::Context;
use super::shell::Arg;
use crate::protocol::{Mode, Target};
use std::path::Path;

/// A call to a custom tool, with the current state of its manifest and programs.
pub(crate) struct Custom<'a> {
    pub name: &'a str,
    pub argv: &'a [String],
    pub input: Option<&'a str>,
    pub fingerprint: &'a str,
    /// Whether the user has reviewed the tool in its current state.
    pub known: bool,
    /// Whether the tool declares itself read-only, which the sandbox enforces.
    pub reads_only: bool,
}

/// Formats the arguments as a shell command line, with the input as a here-document.
pub fn to_shell_line(argv: &[String], input: Option<&str>) -> String {
    let line = line(argv);
    let Some(input) = input.filter(|input| !input.is_empty()) else { return line };
    let mut end = "STDIN".to_owned();
    while input.lines().any(|line| line == end) {
        end.push('_');
    }
    let gap = if input.ends_with('\n') { "" } else { "\n" };
    format!("{line} <<'{end}'\n{input}{gap}{end}")
}

/// Judges a custom tool. The tool has at most the permissions of commands, but rules that allow commands do not apply
/// to it.
pub(crate) fn judge(custom: &Custom<'_>, cwd: &Target, scene: &CommandContext<'_>) -> ActionFinding {
    // The mode is applied to the tool, not to its command.
    let context = Context { mode: Mode::Ask, ..scene.context.clone() };
    let as_command = CommandContext { context: &context, grants: &[], mandate: &[], ..*scene };
    let argv: Vec<String> = custom.argv.iter().map(|word| normalize_word(word, &context)).collect();
    let mut finding = command::judge(&to_shell_line(&argv, custom.input), cwd, &as_command);
    let words: Vec<Arg> = argv.iter().map(Arg::plain).collect();
    let asked = scene.layers.iter().filter_map(|layer| command::ask_of_layer(&words, layer, scene.now));
    let of_command = Some(finding.decided).filter(|decided| decided.is_denial() || decided.locked);
    finding.decided = of_command.into_iter().chain(asked).fold(judge_by_rules(custom, scene), LayerVerdict::stricter);
    finding.parts.clear();
    finding.remember = None;
    finding.reads_only = custom.reads_only;
    finding
}

/// Returns a word in the form that rules match. Programs in the user's tool directory are judged by base name, because
/// that directory belongs to aye and command lines must not refer to it.
fn normalize_word(word: &str, context: &Context) -> String {
    let path = Path::new(word);
    let own = context.own.iter().any(|own| path.starts_with(own.join("tools")));
    let name = path.file_name().filter(|_| own).and_then(|name| name.to_str());
    name.unwrap_or(word).to_owned()
}

fn judge_by_rules(custom: &Custom<'_>, scene: &CommandContext<'_>) -> LayerVerdict {
    let rules = |decision: RuleDecision| {
        let all =
            scene.layers.iter().flat_map(|layer: &CompiledLayer| layer.custom.iter().map(move |owned| (layer.scope, owned)));
        all.filter(move |(_, owned)| {
            owned.rule.decision == decision
                && is_in_effect(owned.rule.expires_at, scene.now)
                && owned.rule.applies_to(custom.name)
        })
    };
    let named = |owned: &ScopedRule<ToolRule>| owned.scope.rule(owned.rule.line);
    if let Some((_, owned)) = rules(RuleDecision::Deny).next() {
        return LayerVerdict::deny(named(owned), reason(&owned.rule.reason, "denied by a rule"));
    }
    if let Some((scope, owned)) = rules(RuleDecision::Ask).next() {
        let mut asked = LayerVerdict::ask(named(owned), reason(&owned.rule.reason, "a rule requires approval"));
        // No mode runs a tool that the user has not reviewed.
        asked.locked = scope.is_managed() || !custom.known;
        return asked;
    }
    let mut changed = None;
    for (_, owned) in rules(RuleDecision::Allow).filter(|(scope, _)| scope.grants()) {
        match &owned.rule.fingerprint {
            Some(fingerprint) if fingerprint == custom.fingerprint => {}
            None if custom.known => {}
            Some(_) | None => {
                changed.get_or_insert_with(|| named(owned));
                continue;
            }
        }
        return LayerVerdict::allow(named(owned), reason(&owned.rule.reason, "allowed by a rule"));
    }
    let name = custom.name;
    match changed {
        Some(rule) => {
            LayerVerdict::ask(rule, format!("the tool `{name}` or its program changed since it was allowed")).not_grantable()
        }
        None if !custom.known => {
            LayerVerdict::ask("built-in", format!("the tool `{name}` is new or has changed since you reviewed it"))
                .not_grantable()
        }
        None => LayerVerdict::ask("built-in", format!("the tool `{name}` needs approval until one of your rules allows it")),
    }
}
