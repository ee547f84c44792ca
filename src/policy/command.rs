//! Verdicts on shell command lines. The commands in a line are checked against rules, option tables and paths.

use super::bundle::{Approve, Rule, RuleDecision, ShellCapability, Terms};
use super::computed_code::CONCEALS_TEXT;
use super::downloaded_code::mark_downloaded_code;
use super::effect::shown_secret_sentence;
use super::git::{drops_stash, is_plain_add, without_message, without_messages};
use super::interpreters::{adds_task, is_kept_in_a_copy, kind, program_word_count};
use super::layer::{CompiledLayer, FileRules, Scope, ScopedRule, is_in_effect, is_managed_rule};
use super::layer_verdict::{ActionFinding, LayerVerdict, combine_layers, reason, unlisted_verdict};
use super::passed_programs::blocked_program_reason;
use super::path_words::{as_path, is_outside_workspace, path_part};
use super::paths::{Context, Sandbox};
use super::permit::Grant;
use super::secret_reads::shown_secret;
use super::shell::option_verdict::OptionVerdict;
use super::shell::options::check_options;
use super::shell::{
    Arg, COMPUTED, EnteredLine, HOPELESS, Invocation, LONGER_THAN_A_LINE, ParsedLine, SimpleCommand, changes_directory, entered,
    read,
};
use super::{danger, guard};
use crate::protocol::{CommandPart, Mode, Risk, Target, VerdictKind};
use jiff::Timestamp;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

const DISCARDS: &str = "aye can restore workspace files, except ignored and very large ones";
const DROPS_STASH: &str = "aye cannot restore them";
const UNCOVERED: &str = "no rule matches this command";
const CONCEALS_NAME: &str = "runs a program whose name is known only at run time, and this policy blocks programs";
const ENTERS: &str = "changes to a directory in the workspace";
const MOVES: &str = "the line changes directory, so aye cannot resolve its paths";

/// Name of the rule in the verdict on a command that the approved plan allows.
pub(crate) const MANDATE: &str = "plan";
pub(crate) const NAMED_IN_PLAN: &str = "named in the plan that you approved";

/// Context shared by all parts of the command line being judged.
#[derive(Clone, Copy)]
pub(crate) struct CommandContext<'a> {
    pub layers: &'a [CompiledLayer],
    pub context: &'a Context,
    pub cwd: &'a Path,
    pub now: Timestamp,
    pub grants: &'a [Grant],
    /// Grants of the running task's approved plan.
    pub mandate: &'a [Grant],
}

/// Returns the verdict on a command line, combined across all policy layers. Modes and grants are applied to each part
/// separately.
pub(crate) fn judge(command: &str, cwd: &Target, scene: &CommandContext<'_>) -> ActionFinding {
    if let Some(refused) = directory_denial(cwd, scene) {
        return finding(refused, Risk::High, Vec::new());
    }
    match entered(command).and_then(|entered| Some((working_directory(&entered, scene)?, entered))) {
        Some((directory, entered)) => judge_entered(&entered, &directory, scene),
        None => judge_line(command, scene),
    }
}

/// Returns the directory that a command line changes to. Returns `None` if the directory is outside the workspace or a
/// component of its path is blocked. The caller checks symlinks in the path separately.
fn working_directory(entered: &EnteredLine<'_>, scene: &CommandContext<'_>) -> Option<PathBuf> {
    let directory = &entered.directory;
    let path = scene.context.resolve(&as_path(directory), scene.cwd);
    (bad_operand(directory, scene).is_none() && scene.context.in_workspace(&path)).then_some(path)
}

/// Returns the directory in which the commands in a line run: the workspace directory that the line changes to, or else
/// its working directory.
pub(crate) fn command_directory(command: &str, scene: &CommandContext<'_>) -> PathBuf {
    entered(command).and_then(|entered| working_directory(&entered, scene)).unwrap_or_else(|| scene.cwd.to_owned())
}

/// Judges a command line that changes to a workspace directory. The remaining commands are judged as a line of their
/// own that runs in that directory.
fn judge_entered(entered: &EnteredLine<'_>, directory: &Path, scene: &CommandContext<'_>) -> ActionFinding {
    let change = judge_change(entered, scene);
    let mut rest = judge_line(entered.rest, &CommandContext { cwd: directory, ..*scene });
    for part in &mut rest.parts {
        part.input_from = part.input_from.map(|from| from + change.parts.len());
    }
    let remember = rest.remember.take();
    let own = (change.decided.verdict == VerdictKind::Allow).then(|| rest.decided.clone());
    let whole = combine(change, rest);
    ActionFinding { decided: own.unwrap_or(whole.decided), remember, ..whole }
}

/// Judges a change of directory, which needs approval only if a rule requires it.
fn judge_change(entered: &EnteredLine<'_>, scene: &CommandContext<'_>) -> ActionFinding {
    let line = read(entered.first);
    let Some(part) = line.parts.first() else { return judge_line(entered.first, scene) };
    let mut change = judge_part(&line, part, scene);
    if change.decided.verdict == VerdictKind::Ask && change.decided.is_uncovered && !change.decided.locked {
        change.decided = LayerVerdict::allow("built-in", ENTERS);
        for part in &mut change.parts {
            (part.verdict, part.rule, part.reason) = (VerdictKind::Allow, "built-in".to_owned(), ENTERS.to_owned());
        }
    }
    change
}

fn judge_line(command: &str, scene: &CommandContext<'_>) -> ActionFinding {
    let line = read_line(command);
    if line.failed {
        return finding(LayerVerdict::deny("built-in", guard::FAILED), Risk::High, Vec::new());
    }
    if line.hopeless {
        return finding(LayerVerdict::deny("built-in", HOPELESS), Risk::High, Vec::new());
    }
    if line.too_long {
        return finding(LayerVerdict::deny("built-in", LONGER_THAN_A_LINE), Risk::High, Vec::new());
    }
    let mut whole: Option<ActionFinding> = None;
    for part in &line.parts {
        let one = judge_part(&line, part, scene);
        whole = Some(match whole {
            None => one,
            Some(whole) => combine(whole, one),
        });
    }
    let mut whole = whole.unwrap_or_else(|| judge_empty(command, &line, scene));
    if line.parts.len() != 1 {
        whole.remember = None;
    }
    name_inputs(&line.parts, &mut whole.parts);
    whole
}

/// For each part that reads another part's output, records which part produces that output.
fn name_inputs(parts: &[SimpleCommand], shown: &mut [CommandPart]) {
    for (at, part) in parts.iter().enumerate().take(shown.len()) {
        let printed = part.input_from.as_ref();
        shown[at].input_from = printed.and_then(|text| parts[..at].iter().rposition(|before| before.text == *text));
    }
}

fn read_line(command: &str) -> ParsedLine {
    let mut line = read(command);
    if line.parts.iter().flat_map(|part| &part.invocations).any(|invocation| changes_directory(invocation.base())) {
        line.floors.push(MOVES);
    }
    mark_downloaded_code(&mut line);
    line
}

fn finding(decided: LayerVerdict, risk: Risk, parts: Vec<CommandPart>) -> ActionFinding {
    ActionFinding { decided, risk, critical: false, reads_only: false, remember: None, parts }
}

fn combine(mut whole: ActionFinding, mut one: ActionFinding) -> ActionFinding {
    whole.parts.append(&mut one.parts);
    // If any part of a line may run an unknown program, the program names of the other parts are not sufficient.
    let by_name = whole.decided.by_name && one.decided.by_name;
    // Of equal verdicts, the reason of the part with the higher risk is shown.
    let decided = if (one.critical, one.risk) > (whole.critical, whole.risk) {
        one.decided.stricter(whole.decided)
    } else {
        whole.decided.stricter(one.decided)
    };
    ActionFinding {
        decided: LayerVerdict { by_name, ..decided },
        risk: whole.risk.max(one.risk),
        critical: whole.critical || one.critical,
        reads_only: whole.reads_only && one.reads_only,
        remember: None,
        parts: whole.parts,
    }
}

/// Returns a denial if commands may not run in this working directory.
fn directory_denial(cwd: &Target, scene: &CommandContext<'_>) -> Option<LayerVerdict> {
    let given = &cwd.given;
    if scene.context.is_own(&cwd.real) {
        return Some(LayerVerdict::deny("built-in", format!("`{given}` belongs to aye, and no tool may access it")));
    }
    if !scene.context.in_workspace(&cwd.real) {
        return Some(LayerVerdict::deny("built-in", format!("the working directory `{given}` is outside the workspace")));
    }
    None
}

/// A command that can be saved as a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SavablePart {
    pub argv: Vec<Arg>,
    /// Whether a saved rule would allow the command only in a copy of the workspace.
    pub in_a_copy: bool,
}

/// Returns the parts that need approval, in the order in which they occur in the line. If some parts cannot be saved as
/// rules, the error lists the reason for each of them.
pub(crate) fn parts_needing_approval(
    command: &str,
    cwd: &Target,
    scene: &CommandContext<'_>,
    by_person: impl Fn(&str) -> bool,
) -> Result<Vec<SavablePart>, Vec<String>> {
    if let Some(refused) = directory_denial(cwd, scene) {
        return Err(vec![refused.reason]);
    }
    let Some((directory, rest)) = entered(command).and_then(|entered| Some((working_directory(&entered, scene)?, entered.rest)))
    else {
        return line_parts_needing_approval(command, 0, scene, by_person);
    };
    line_parts_needing_approval(rest, 1, &CommandContext { cwd: &directory, ..*scene }, by_person)
}

/// Returns the parts of a line that need approval. `before` is the number of parts that precede this line in a longer
/// line.
fn line_parts_needing_approval(
    command: &str,
    before: usize,
    scene: &CommandContext<'_>,
    by_person: impl Fn(&str) -> bool,
) -> Result<Vec<SavablePart>, Vec<String>> {
    let line = read_line(command);
    if line.failed {
        return Err(vec![guard::FAILED.to_owned()]);
    }
    if line.hopeless || line.parts.is_empty() {
        return Err(vec![if line.hopeless { HOPELESS } else { "the line contains no command" }.to_owned()]);
    }
    let held = scene.context.sandbox == Sandbox::Present;
    let (mut asking, mut never) = (Vec::new(), Vec::new());
    for (at, part) in line.parts.iter().enumerate() {
        let decided = judge_part(&line, part, scene).decided;
        if decided.verdict == VerdictKind::Allow && (held || by_person(&decided.rule)) {
            continue;
        }
        match unsavable_reason(&line, part, &decided, scene) {
            None => asking.push(SavablePart { argv: part.invocations[0].argv.clone(), in_a_copy: is_kept_in_a_copy(part) }),
            Some(why) if line.parts.len() + before > 1 => never.push(format!("part {} {why}", at + 1 + before)),
            Some(why) => never.push(format!("the command {why}")),
        }
    }
    if never.is_empty() { Ok(asking) } else { Err(never) }
}

/// Calls `use_part` with the command in a line and the directory in which the command runs. Does nothing if the line
/// contains several commands, or if its command runs another program.
pub(crate) fn only_command(
    command: &str,
    cwd: &Target,
    scene: &CommandContext<'_>,
    use_part: impl FnOnce(&ParsedLine, &SimpleCommand, &CommandContext<'_>),
) {
    if directory_denial(cwd, scene).is_some() {
        return;
    }
    let entered = entered(command).and_then(|entered| Some((working_directory(&entered, scene)?, entered.rest)));
    let (directory, rest) = match &entered {
        Some((directory, rest)) => (directory.as_path(), *rest),
        None => (scene.cwd, command),
    };
    let line = read_line(rest);
    if line.failed || line.hopeless {
        return;
    }
    if let [part] = line.parts.as_slice()
        && let [_] = part.invocations.as_slice()
    {
        use_part(&line, part, &CommandContext { cwd: directory, ..*scene });
    }
}

/// Returns whether an allow rule that matches a command is in effect and permits all of its arguments.
pub(crate) fn is_in_reach(rule: &Rule, line: &ParsedLine, part: &SimpleCommand, scene: &CommandContext<'_>) -> bool {
    is_in_effect(rule.expires_at, scene.now) && uncovered_reason(rule, line, part, &part.invocations[0], scene).is_none()
}

/// Returns whether a managed policy layer denies any part of a line or requires approval for it.
pub(crate) fn is_managed(command: &str, scene: &CommandContext<'_>) -> bool {
    let line = read_line(command);
    let decides = |layer: &CompiledLayer| {
        let verdicts = line.parts.iter().filter_map(|part| part_in_layer(&line, part, layer, scene));
        line.parts.is_empty() || verdicts.into_iter().any(|decided| decided.verdict != VerdictKind::Allow)
    };
    scene.layers.iter().filter(|layer| layer.scope.is_managed()).any(decides)
}

/// Returns whether the only command in a line may be saved as a rule. If `in_a_copy` is set, the rule would apply only
/// in copies of the workspace.
pub(crate) fn can_be_saved(command: &str, scene: &CommandContext<'_>, in_a_copy: bool) -> bool {
    let line = read_line(command);
    match line.parts.as_slice() {
        [part] => {
            let never = unsavable_reason(&line, part, &judge_part(&line, part, scene).decided, scene);
            never.is_none() && is_kept_in_a_copy(part) == in_a_copy
        }
        _ => false,
    }
}

/// Returns why a part cannot be saved as a rule, as a phrase that follows the number of the part.
fn unsavable_reason(
    line: &ParsedLine,
    part: &SimpleCommand,
    decided: &LayerVerdict,
    scene: &CommandContext<'_>,
) -> Option<String> {
    let danger = danger::for_part(part, scene.context, scene.cwd);
    if danger::discards(part)
        && let Some(why) = danger::always_ask_reason(part, &danger)
    {
        return Some(why);
    }
    if decided.locked {
        let managed = if is_managed_rule(&decided.rule) { "is locked by" } else { "needs approval under" };
        return Some(format!("{managed} {}: {}", decided.rule, decided.reason));
    }
    if let Some(why) = danger::always_ask_reason(part, &danger) {
        return Some(why);
    }
    if let Some(floor) = part.floors.iter().chain(&line.floors).next() {
        return Some(format!("is not a plain program call: {floor}"));
    }
    (part.invocations.len() != 1).then(|| "is run through another program".to_owned())
}

/// Judges a line without a simple command, such as an empty line or pure arithmetic.
fn judge_empty(command: &str, line: &ParsedLine, scene: &CommandContext<'_>) -> ActionFinding {
    let part = SimpleCommand { text: command.trim().to_owned(), ..SimpleCommand::default() };
    let mut finding = judge_part(line, &part, scene);
    if command.trim().is_empty() {
        finding.decided = finding.decided.stricter(LayerVerdict::ask("built-in", "the command is empty").not_grantable());
        finding.parts.clear();
    }
    finding
}

fn judge_part(line: &ParsedLine, part: &SimpleCommand, scene: &CommandContext<'_>) -> ActionFinding {
    let mut danger = danger::for_part(part, scene.context, scene.cwd);
    danger.reads_only &= line.floors.is_empty();
    if line.multiplies {
        danger.critical = true;
        danger.risk = Risk::High;
    }
    if danger.critical {
        danger.risk = Risk::High;
    }
    let mut decided = combine_layers("Shell.Exec", scene.layers, |layer| part_in_layer(line, part, layer, scene));
    if let Some(effect) = danger.effect.as_ref().filter(|_| decided.is_uncovered) {
        decided.reason.clone_from(&effect.sentence);
    }
    if scene.context.is_too_wide() {
        decided = decided.stricter(
            LayerVerdict::ask("built-in", "the workspace is too broad, so aye asks before it runs anything").not_grantable(),
        );
    }
    if danger::discards(part) && decided.verdict != VerdictKind::Deny {
        let effect = danger.effect.as_ref().map_or("discards uncommitted changes", |effect| effect.sentence.as_str());
        let restores = if part.invocations.iter().any(drops_stash) { DROPS_STASH } else { DISCARDS };
        decided = decided.stricter(LayerVerdict::ask("built-in", format!("{effect}; {restores}")).not_grantable());
    }
    if let Some((path, rule)) = blocked_operand(part, scene) {
        decided = decided.stricter(LayerVerdict::ask(rule, format!("`{path}` is a blocked path")).not_grantable());
    }
    if danger.reads_only {
        decided = ask_about_secret(decided, part, scene);
    }
    if decided.verdict != VerdictKind::Deny
        && let Some(rule) = blocking_rule(scene)
        && let Some(reason) = may_start_blocked(line, part, scene)
    {
        let approval_rule = decided.approval_rule.clone();
        decided = decided.stricter(LayerVerdict { approval_rule, ..LayerVerdict::ask(rule, reason).not_grantable() });
    }
    let remember = session_grant(line, part, &decided, &danger, scene.cwd);
    decided = apply_grants_and_mode(decided, &danger, remember.as_ref(), scene);
    let shown = CommandPart {
        text: part.text.clone(),
        verdict: decided.verdict,
        rule: decided.rule.clone(),
        reason: decided.reason.clone(),
        risk: danger.risk,
        critical: danger.critical,
        effect: danger.effect.as_ref().map(|effect| effect.sentence.clone()),
        containment: danger.effect.as_ref().and_then(|effect| effect.containment).filter(|_| writes_only_in_workspace(scene)),
        input_from: None,
    };
    ActionFinding {
        decided,
        risk: danger.risk,
        critical: danger.critical,
        reads_only: danger.reads_only,
        remember,
        parts: vec![shown],
    }
}

/// Requires approval, in every mode and despite rules that allow a program by name, for a part that shows the model a
/// file with secrets. A policy that allows all commands remains in effect.
fn ask_about_secret(decided: LayerVerdict, part: &SimpleCommand, scene: &CommandContext<'_>) -> LayerVerdict {
    let mut shells = scene.layers.iter().filter_map(|layer| layer.bundle.capabilities.shell.as_ref());
    let asks = !decided.is_denial() && shells.any(|shell| shell.requires_approval);
    let Some(name) = shown_secret(part).filter(|_| asks) else { return decided };
    if decided.is_question() {
        return decided.not_grantable();
    }
    let approval_rule = decided.approval_rule;
    LayerVerdict { approval_rule, ..LayerVerdict::ask("built-in", shown_secret_sentence(&name)).not_grantable() }
}

/// Returns whether the sandbox prevents the command from writing outside the workspace. This is the case if a sandbox
/// exists and no policy layer changes it or makes other paths writable.
fn writes_only_in_workspace(scene: &CommandContext<'_>) -> bool {
    let shells = scene.layers.iter().filter_map(|layer| layer.bundle.capabilities.shell.as_ref());
    let opens = |terms: &Terms| terms.sandbox.is_some() || terms.writable_paths.is_some() || terms.cache.is_some();
    scene.context.sandbox == Sandbox::Present && !shells.map(|shell| &shell.terms).any(opens)
}

/// Returns why a part could start a program that a policy layer blocks, or `None` if it cannot.
fn may_start_blocked(line: &ParsedLine, part: &SimpleCommand, scene: &CommandContext<'_>) -> Option<String> {
    let is_blocked = |argv: &[Arg]| scene.layers.iter().any(|layer| denial_of_layer(argv, layer, scene.now).is_some());
    hidden_program_reason(part, scene).map(str::to_owned).or_else(|| blocked_program_reason(line, part, is_blocked))
}

/// Returns why the program that a part runs is unknown, or `None` if it is known.
fn hidden_program_reason(part: &SimpleCommand, scene: &CommandContext<'_>) -> Option<&'static str> {
    if part.floors.contains(&COMPUTED) {
        return Some(CONCEALS_NAME);
    }
    if part.unknown_code || (part.reads_code && part.piped) {
        return Some(CONCEALS_TEXT);
    }
    // Combinations that were not analysed matter if they could name another program, or words that a rule mentions.
    let telling =
        |one: &Invocation| one.wrapped || part.renames || scene.layers.iter().any(|layer| blocks_some_use(layer, one.base()));
    (part.narrowed && part.invocations.iter().any(telling)).then_some(CONCEALS_NAME)
}

/// Returns whether a policy layer blocks the program, at least with some arguments.
fn blocks_some_use(layer: &CompiledLayer, program: &str) -> bool {
    layer.bundle.capabilities.shell.iter().flat_map(|shell| &shell.blocked).any(|entry| entry.is_about(program))
        || layer.commands.iter().any(|owned| owned.rule.decision == RuleDecision::Deny && owned.rule.is_about(program))
}

/// Returns the first rule that blocks or denies a program.
fn blocking_rule(scene: &CommandContext<'_>) -> Option<String> {
    scene.layers.iter().find_map(|layer| {
        let blocked = layer.bundle.capabilities.shell.iter().flat_map(|shell| &shell.blocked).next();
        let denies = |owned: &&ScopedRule<Rule>| {
            owned.rule.decision == RuleDecision::Deny && is_in_effect(owned.rule.expires_at, scene.now)
        };
        let rule = || layer.commands.iter().find(denies).map(|owned| owned.scope.rule(owned.rule.line));
        blocked.map(|entry| layer.scope.rule(entry.line)).or_else(rule)
    })
}

/// Applies session grants and the mode to a verdict.
fn apply_grants_and_mode(
    decided: LayerVerdict,
    danger: &danger::PartDanger,
    remember: Option<&Grant>,
    scene: &CommandContext<'_>,
) -> LayerVerdict {
    let mode = scene.context.mode;
    if mode == Mode::Plan && !danger.reads_only && decided.verdict != VerdictKind::Deny {
        return LayerVerdict::deny("plan mode", "plan mode runs only read-only commands");
    }
    // Without a sandbox, the user's session grant takes precedence over an allow rule.
    let unheld = decided.verdict == VerdictKind::Allow && scene.context.sandbox == Sandbox::Absent;
    let asks = decided.verdict == VerdictKind::Ask && !decided.locked;
    if (asks || unheld) && remember.is_some_and(|grant| scene.grants.contains(grant)) {
        return LayerVerdict::allow("session", "allowed by you until aye quits").named_by_program();
    }
    if !asks {
        return decided;
    }
    // Without a sandbox, no plan covers a command.
    if scene.context.sandbox == Sandbox::Present && remember.is_some_and(|grant| scene.mandate.contains(grant)) {
        return LayerVerdict::allow(MANDATE, NAMED_IN_PLAN).named_by_program().allowed_by_plan();
    }
    if mode == Mode::Auto && danger.can_run_unattended() && scene.context.sandbox == Sandbox::Present {
        return decided.allowed_by_mode(mode);
    }
    decided
}

/// Returns the session grant that would allow exactly these words to run again in this directory. Returns `None` if the
/// command is risky, or if its words do not show everything it does, as when the shell expands a glob or `~` in them.
fn session_grant(
    line: &ParsedLine,
    part: &SimpleCommand,
    decided: &LayerVerdict,
    danger: &danger::PartDanger,
    cwd: &Path,
) -> Option<Grant> {
    let plain = line.floors.is_empty() && part.floors.is_empty() && part.redirects.is_empty() && part.invocations.len() == 1;
    let safe = !decided.locked && !danger.never_remembered && !danger.critical && danger.risk <= Risk::Medium;
    // A grant contains only text, so it would also match a word that the shell expands.
    let is_literal = || part.invocations[0].argv.iter().all(|arg| !is_expanded(arg));
    let words = || part.invocations[0].argv.iter().map(|arg| arg.text.clone()).collect();
    (plain && safe && is_literal()).then(|| Grant::Command { words: words(), directory: cwd.to_owned() })
}

/// Returns whether the shell replaces a word with other text that is not known before the line runs.
pub(crate) fn is_expanded(arg: &Arg) -> bool {
    arg.glob || arg.tilde || !arg.is_known()
}

fn part_in_layer(
    line: &ParsedLine,
    part: &SimpleCommand,
    layer: &CompiledLayer,
    scene: &CommandContext<'_>,
) -> Option<LayerVerdict> {
    let Some(shell) = &layer.bundle.capabilities.shell else { return unlisted_verdict("Shell.Exec", layer) };
    let judged = part.invocations.iter().map(|invocation| invocation_in_layer(line, part, invocation, shell, layer, scene));
    let decided =
        judged.reduce(LayerVerdict::stricter).unwrap_or_else(|| undecided_verdict(line, part, shell, layer.scope, None));
    Some(decided)
}

/// Returns a denial if the policy layer blocks a command or denies it by a rule, however it is run.
pub(crate) fn denial_of_layer(argv: &[Arg], layer: &CompiledLayer, now: Timestamp) -> Option<LayerVerdict> {
    let blocked = layer.bundle.capabilities.shell.iter().flat_map(|shell| &shell.blocked).find(|entry| entry.could_match(argv));
    if let Some(entry) = blocked {
        return Some(LayerVerdict::deny(layer.scope.rule(entry.line), format!("`{}` is a blocked command", entry.text)));
    }
    let denies = |owned: &&ScopedRule<Rule>| {
        owned.rule.decision == RuleDecision::Deny && is_in_effect(owned.rule.expires_at, now) && owned.rule.restricts(argv)
    };
    let owned = layer.commands.iter().find(denies)?;
    Some(LayerVerdict::deny(owned.scope.rule(owned.rule.line), reason(&owned.rule.reason, "denied by a rule")))
}

/// Returns the verdict of the ask rule that matches a command, however it is run.
pub(crate) fn ask_of_layer(argv: &[Arg], layer: &CompiledLayer, now: Timestamp) -> Option<LayerVerdict> {
    let asks = |owned: &&ScopedRule<Rule>| {
        owned.rule.decision == RuleDecision::Ask && is_in_effect(owned.rule.expires_at, now) && owned.rule.restricts(argv)
    };
    let owned = layer.commands.iter().find(asks)?;
    let mut asked = LayerVerdict::ask(owned.scope.rule(owned.rule.line), reason(&owned.rule.reason, "a rule requires approval"));
    asked.locked = layer.scope.is_managed();
    Some(asked)
}

/// Returns a policy layer's verdict on a command. Blocked commands and deny rules are checked first, followed by ask
/// rules, allow rules, `allowed_commands` and the default approval.
fn invocation_in_layer(
    line: &ParsedLine,
    part: &SimpleCommand,
    invocation: &Invocation,
    shell: &ShellCapability,
    layer: &CompiledLayer,
    scene: &CommandContext<'_>,
) -> LayerVerdict {
    let (argv, scope) = (&invocation.argv, layer.scope);
    if let Some(refused) = denial_of_layer(argv, layer, scene.now) {
        return refused;
    }
    let by = |decision: RuleDecision| {
        let current = layer.commands.iter().filter(|owned| is_in_effect(owned.rule.expires_at, scene.now));
        current.filter(move |owned| owned.rule.decision == decision).map(|owned| (owned.scope, &owned.rule))
    };
    if let Some((of, rule)) = by(RuleDecision::Ask).find(|(_, rule)| rule.restricts(argv)) {
        let mut asked = LayerVerdict::ask(of.rule(rule.line), reason(&rule.reason, "a rule requires approval"));
        asked.locked = scope.is_managed();
        asked.approve = rule.approve;
        asked.approval_rule.clone_from(&shell.approval_rule);
        return asked;
    }
    let mut obstacle = None;
    let speaks = |rule: &Rule| rule.may_name(&argv[0].text) && rule.matches_allow(argv);
    // A rule without `sandboxed` takes precedence over a rule that applies only in a copy.
    for sandboxed in [false, true] {
        for (scope, rule) in by(RuleDecision::Allow).filter(|(_, rule)| rule.sandboxed == sandboxed && speaks(rule)) {
            match uncovered_reason(rule, line, part, invocation, scene) {
                None if sandboxed => return judge_in_layer(rule, scope, shell),
                None => {
                    return LayerVerdict::allow(scope.rule(rule.line), reason(&rule.reason, "allowed by a rule"))
                        .named_by_program();
                }
                Some(why) => obstacle = Some(why),
            }
        }
    }
    // `[[` is a keyword of the shell and not a program.
    if let Some(allowed) = &shell.allowed
        && argv[0].text != "[["
        && !allowed.iter().any(|entry| entry.hits(argv))
    {
        let name = invocation.base().replace('\0', "…");
        return LayerVerdict::deny(scope.rule(shell.allowed_line), format!("`{name}` is not in `allowed_commands`"));
    }
    undecided_verdict(line, part, shell, scope, obstacle)
}

/// Returns the verdict of a rule that applies only in a copy of the workspace. The command needs approval if no copy
/// can be made.
fn judge_in_layer(rule: &Rule, scope: Scope, shell: &ShellCapability) -> LayerVerdict {
    let given = reason(&rule.reason, "allowed by a rule");
    let mut asked = LayerVerdict::ask(scope.rule(rule.line), format!("{given}, only in a copy of the workspace")).with_copy();
    asked.approval_rule.clone_from(&shell.approval_rule);
    asked
}

fn undecided_verdict(
    line: &ParsedLine,
    part: &SimpleCommand,
    shell: &ShellCapability,
    scope: Scope,
    obstacle: Option<String>,
) -> LayerVerdict {
    if !shell.requires_approval {
        return LayerVerdict::allow(scope.rule(shell.approval_line), "no approval is required");
    }
    let floor = part.floors.iter().chain(&line.floors).next();
    let reason = obstacle.or_else(|| floor.map(|floor| (*floor).to_owned())).unwrap_or_else(|| UNCOVERED.to_owned());
    let mut asked = LayerVerdict::ask(scope.rule(shell.approval_line), reason);
    asked.locked = scope.is_managed();
    asked.approval_rule.clone_from(&shell.approval_rule);
    asked.is_uncovered = true;
    asked.approve = Approve::Effects;
    asked
}

/// Returns why an allow rule does not permit a command that it matches, or `None` if it does.
fn uncovered_reason(
    rule: &Rule,
    line: &ParsedLine,
    part: &SimpleCommand,
    invocation: &Invocation,
    scene: &CommandContext<'_>,
) -> Option<String> {
    if let Some(floor) = part.floors.iter().chain(&line.floors).next() {
        return Some((*floor).to_owned());
    }
    if invocation.argv[0].quoted {
        return Some("the program name is quoted".to_owned());
    }
    for redirect in &part.redirects {
        match &redirect.target {
            Some(target) if redirect.reads_only && !target.glob => {
                if let Some(why) = bad_operand(target, scene) {
                    return Some(why);
                }
            }
            Some(target) => return Some(format!("writes to `{}`", target.text)),
            None => return Some("redirects to a file whose name is known only at run time".to_owned()),
        }
    }
    let argv =
        &*without_messages(&invocation.argv).filter(|_| rule.message || rule.exact).unwrap_or_else(|| invocation.argv.clone());
    if rule.sandboxed && (part.reads_code || part.unknown_code) {
        return Some("runs code that is known only at run time".to_owned());
    }
    if rule.sandboxed && kind(&argv[0].text).is_some() {
        let name = &argv[0].text;
        if let Err(why) = program_word_count(argv) {
            return Some(format!("`{name}` {why}"));
        }
        if let Some(word) = adds_task(argv, rule.word_count()).filter(|_| !rule.exact) {
            return Some(format!("`{word}` can change what `{name}` runs"));
        }
    }
    let covers_options = rule.any_args || rule.message || rule.sandboxed || is_plain_add(argv);
    let words: Vec<&str> = match check_options(argv) {
        OptionVerdict::MayDoMore { word } if !covers_options => return Some(format!("`{word}` can write or run something")),
        OptionVerdict::Reads { paths } => paths,
        OptionVerdict::MayDoMore { .. } | OptionVerdict::NoTable => argv[1..].iter().map(|arg| path_part(&arg.text)).collect(),
    };
    if let Some(home) = argv[1..].iter().find(|arg| arg.tilde && is_outside_workspace(arg, scene.context, scene.cwd)) {
        return Some(format!("`{}` is outside the workspace", home.text));
    }
    let arg_of = |word: &str| argv.iter().find(|arg| arg.text.ends_with(word)).cloned().unwrap_or_default();
    words.into_iter().filter(|word| !word.is_empty() && *word != "-").find_map(|word| {
        let whole = arg_of(word);
        bad_operand(&Arg { tilde: whole.tilde && whole.text == word, text: word.to_owned(), ..whole }, scene)
    })
}

fn bad_operand(arg: &Arg, scene: &CommandContext<'_>) -> Option<String> {
    let text = &arg.text;
    if is_outside_workspace(arg, scene.context, scene.cwd) || (arg.glob && may_match_parent(text)) {
        return Some(format!("`{text}` is outside the workspace"));
    }
    if text.split('/').any(|component| component == "..") && !text.starts_with("..") {
        return Some(format!("`{text}` contains `..`, which a symlink could redirect"));
    }
    blocking_path_rule(arg, false, scene).map(|_| format!("`{text}` is a blocked path"))
}

/// Returns whether a glob such as `.*` can match `..`.
fn may_match_parent(text: &str) -> bool {
    text.split('/').any(|component| component.starts_with(".*") || component.starts_with(".?") || component.starts_with(".["))
}

/// Returns the rule that blocks the path in an argument.
fn blocking_path_rule(arg: &Arg, written: bool, scene: &CommandContext<'_>) -> Option<String> {
    let path = scene.context.resolve(&as_path(arg), scene.cwd);
    let is_own = scene.context.is_own(&path) && (written || !scene.context.is_in_plugin_skill(&path));
    if is_own || scene.context.credential_place(&path).is_some() {
        return Some("built-in".to_owned());
    }
    let shut = |layer: &CompiledLayer| {
        let by = |files: &Option<FileRules>| Some(files.as_ref()?.denying_rule(layer.scope, &path, scene.now)?.rule);
        by(&layer.read).or_else(|| by(&layer.write).filter(|_| written))
    };
    scene.layers.iter().find_map(shut)
}

/// Returns the first argument that refers to a blocked path, and the rule that blocks it.
fn blocked_operand(part: &SimpleCommand, scene: &CommandContext<'_>) -> Option<(String, String)> {
    let part = &*without_message(part);
    let args = part.invocations.iter().flat_map(|invocation| &invocation.argv[1..]).map(|arg| (arg, false));
    let targets = part.redirects.iter().filter_map(|redirect| Some((redirect.target.as_ref()?, !redirect.reads_only)));
    let mut seen = HashSet::new();
    args.chain(targets).filter(|(arg, written)| seen.insert((*arg, *written))).find_map(|(arg, written)| {
        let word = Arg { text: path_part(&arg.text).to_owned(), ..arg.clone() };
        let rule = (!word.text.is_empty() && word.is_known()).then(|| blocking_path_rule(&word, written, scene)).flatten()?;
        Some((arg.text.clone(), rule))
    })
}

/// Returns whether a rule applies to any command in a line. Used to check a rule's examples.
pub(crate) fn applies(rule: &Rule, command: &str, scene: &CommandContext<'_>) -> bool {
    let rest = entered(command).filter(|entered| working_directory(entered, scene).is_some()).map(|entered| entered.rest);
    let line = read_line(rest.unwrap_or(command));
    line.parts.iter().any(|part| {
        part.invocations.iter().any(|invocation| match rule.decision {
            RuleDecision::Ask | RuleDecision::Deny => rule.restricts(&invocation.argv),
            RuleDecision::Allow => {
                rule.may_name(&invocation.argv[0].text)
                    && rule.matches_allow(&invocation.argv)
                    && uncovered_reason(rule, &line, part, invocation, scene).is_none()
            }
        })
    })
}
