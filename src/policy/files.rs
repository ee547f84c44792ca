//! Verdicts on file actions, based on the capability, the location, and the lists of blocked and allowed paths.

use super::bundle::RuleDecision;
use super::excluded::EXCLUDED_LIST;
use super::layer::{CompiledLayer, FileRules, PathRule, Scope, ScopedRule, is_in_effect};
use super::layer_verdict::{ActionFinding, LayerVerdict, combine_layers, reason, unlisted_verdict};
use super::paths::{CodeReader, Context, credentials, is_deeper_than_credentials, is_process_path, protected, runs_code};
use super::permit::Grant;
use super::shell::is_deceptive_name;
use crate::protocol::{Action, Place, Risk, RunsWhen, Target};
use jiff::Timestamp;
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileAccess {
    Read,
    Write,
    Delete,
}

impl FileAccess {
    fn rules(self, layer: &CompiledLayer) -> Option<&FileRules> {
        match self {
            Self::Read => layer.read.as_ref(),
            Self::Write => layer.write.as_ref(),
            Self::Delete => layer.delete.as_ref(),
        }
    }

    fn verb(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::Write => "writes",
            Self::Delete => "deletes",
        }
    }
}

/// Returns the verdict on a file action, combined across all policy layers.
pub(crate) fn judge(
    access: FileAccess,
    action: &Action,
    target: &Target,
    layers: &[CompiledLayer],
    context: &Context,
    now: Timestamp,
) -> ActionFinding {
    let path = target.real.as_path();
    if access == FileAccess::Read && context.is_artifact(target) {
        return judge_artifact(action, layers);
    }
    let guarded = guard(access, path, layers, context);
    let decided = judge_by_layers(access, action, target, guarded.as_ref(), layers, context, now);
    let decided = if access == FileAccess::Read { decided } else { ask_if_runs_on_open(decided, target, layers, context, now) };
    let risk = match access {
        FileAccess::Read => Risk::Low,
        FileAccess::Write if guarded.is_some() || !context.in_workspace(path) => Risk::High,
        FileAccess::Write => Risk::Low,
        FileAccess::Delete => Risk::High,
    };
    let plain = access == FileAccess::Write && risk == Risk::Low && !decided.locked;
    ActionFinding {
        decided,
        risk,
        critical: access == FileAccess::Delete && !context.in_workspace(path),
        reads_only: access == FileAccess::Read,
        remember: plain.then(|| Grant::Write { path: target.real.clone() }),
        parts: Vec::new(),
    }
}

/// Returns whether a file action is denied. Faster than [`judge`].
pub(crate) fn denies(
    access: FileAccess,
    action: &Action,
    target: &Target,
    layers: &[CompiledLayer],
    context: &Context,
    now: Timestamp,
) -> bool {
    if access == FileAccess::Read && context.is_artifact(target) {
        return judge_artifact(action, layers).decided.is_denial();
    }
    let guarded = guard(access, &target.real, layers, context);
    judge_by_layers(access, action, target, guarded.as_ref(), layers, context, now).is_denial()
}

/// Returns the verdict combined across all policy layers, without checking whether the file runs code.
fn judge_by_layers(
    access: FileAccess,
    action: &Action,
    target: &Target,
    guarded: Option<&PathProtection>,
    layers: &[CompiledLayer],
    context: &Context,
    now: Timestamp,
) -> LayerVerdict {
    let scene = FileRuleContext { access, capability: action.capability(), target, guarded, context, now };
    let decided = combine_layers(action.capability(), layers, |layer| scene.judge_layer(layer));
    let decided = fixed_verdict(access, target, context).into_iter().chain([decided]).reduce(LayerVerdict::stricter);
    let special = (target.place == Place::Special).then(|| {
        LayerVerdict::deny("built-in", format!("`{}` is a device, pipe or socket, which aye never opens", target.given))
    });
    // Of two denials, the other one is reported, so that nothing is revealed about paths outside the workspace.
    let decided = special.into_iter().chain(decided).reduce(|special, decided| decided.stricter(special));
    decided.unwrap_or_else(|| LayerVerdict::deny("built-in", "no policy grants this"))
}

/// Requires approval, in every mode and despite general allow rules, for changing a file that runs code when its folder
/// is opened. The requirement is lifted only by an allow rule that lists exactly this path.
fn ask_if_runs_on_open(
    decided: LayerVerdict,
    target: &Target,
    layers: &[CompiledLayer],
    context: &Context,
    now: Timestamp,
) -> LayerVerdict {
    let Some(found) = code_run_on_open(target, context).filter(|_| !decided.is_denial()) else { return decided };
    let path = target.real.as_path();
    let names = |owned: &ScopedRule<PathRule>| {
        let rule = &owned.rule.rule;
        rule.decision == RuleDecision::Allow
            && !owned.scope.only_tightens()
            && is_in_effect(rule.expires_at, now)
            && owned.rule.places.names(found.place(path), path)
    };
    let mut rules = layers.iter().filter_map(|layer| layer.write.as_ref()).flat_map(|write| &write.rules);
    if !decided.is_question() && rules.any(names) {
        return decided;
    }
    let why = found.reason(&target.given);
    if decided.is_question() {
        return LayerVerdict { reason: format!("{}: {why}", decided.reason), is_uncovered: false, ..decided }.not_grantable();
    }
    LayerVerdict { approval_rule: decided.approval_rule, ..LayerVerdict::ask("built-in", why) }.not_grantable()
}

/// Returns the programs that run code from the file when its folder is opened. Checks the path without symlinks first
/// and then the given path, because the file may be a symlink.
fn code_run_on_open(target: &Target, context: &Context) -> Option<CodeReader> {
    let of = |path: &Path| runs_code(path, &context.roots).filter(|found| found.when == RunsWhen::Opened);
    of(&target.real).or_else(|| of(Path::new(&target.given)))
}

/// Judges reading an artifact. Path rules do not apply, because the model has already seen at least part of the
/// artifact.
fn judge_artifact(action: &Action, layers: &[CompiledLayer]) -> ActionFinding {
    let capability = action.capability();
    let decided = combine_layers(capability, layers, |layer| match FileAccess::Read.rules(layer) {
        Some(_) => Some(LayerVerdict::allow("built-in", "reads an artifact from this session")),
        None => unlisted_verdict(capability, layer),
    });
    ActionFinding { decided, risk: Risk::Low, critical: false, reads_only: true, remember: None, parts: Vec::new() }
}

/// Returns the verdict that applies regardless of any bundle.
fn fixed_verdict(access: FileAccess, target: &Target, context: &Context) -> Option<LayerVerdict> {
    let path = target.real.as_path();
    let given = &target.given;
    if context.is_own(path) && !(access == FileAccess::Read && context.is_in_skill(path)) {
        return Some(LayerVerdict::deny("built-in", format!("`{given}` belongs to aye, and no tool may access it")));
    }
    if is_process_path(path, access != FileAccess::Read) {
        return Some(LayerVerdict::deny(
            "built-in",
            format!("`{given}` belongs to a process or the kernel, and no tool may access it"),
        ));
    }
    if access == FileAccess::Delete
        && (context.roots.iter().chain(&context.own).any(|kept| kept.starts_with(path)) || context.home == path)
    {
        return Some(LayerVerdict::deny("built-in", format!("`{given}` contains the workspace or aye's own files")));
    }
    if access != FileAccess::Read && is_deceptive_name(&path.to_string_lossy()) {
        let reason = "the name contains control or invisible characters and may be misleading";
        return Some(LayerVerdict::ask("built-in", reason).not_grantable());
    }
    context.is_too_wide().then(|| {
        let reason = format!("the workspace is too broad, so aye asks before it {} anything", access.verb());
        LayerVerdict::ask("built-in", reason).not_grantable()
    })
}

/// Context shared by all policy layers.
struct FileRuleContext<'a> {
    access: FileAccess,
    capability: &'a str,
    target: &'a Target,
    guarded: Option<&'a PathProtection>,
    context: &'a Context,
    now: Timestamp,
}

impl FileRuleContext<'_> {
    /// Returns the verdict of a policy layer. Blocked paths and deny rules are checked first, followed by protected
    /// paths, the allow list, ask rules, allow rules and the default approval. Rules cannot allow paths outside the
    /// allow list.
    fn judge_layer(&self, layer: &CompiledLayer) -> Option<LayerVerdict> {
        let Some(rules) = self.access.rules(layer) else { return unlisted_verdict(self.capability, layer) };
        let mut decided = self.judge_by_rules(rules, layer.scope);
        decided.lock_if_managed(layer.scope);
        decided.approval_rule.clone_from(&rules.files.approval_rule);
        Some(decided)
    }

    fn judge_by_rules(&self, rules: &FileRules, scope: Scope) -> LayerVerdict {
        let (path, given, files) = (self.target.real.as_path(), &self.target.given, &rules.files);
        let rule = |decision: RuleDecision| {
            let mut current = rules.rules.iter().filter(|owned| is_in_effect(owned.rule.rule.expires_at, self.now));
            current.find(|owned| owned.rule.rule.decision == decision && owned.rule.places.matching_line(path).is_some())
        };
        let named = |owned: &ScopedRule<PathRule>| owned.scope.rule(owned.rule.rule.line);
        let verb = self.access.verb();
        if let Some(shut) = rules.denying_rule(scope, path, self.now) {
            let how = if shut.is_excluded { format!("excluded by {EXCLUDED_LIST}") } else { "a blocked path".to_owned() };
            let blocked = || format!("`{given}` is {how}");
            return LayerVerdict::deny(
                shut.rule,
                shut.denied.map_or_else(blocked, |rule| reason(&rule.reason, "denied by a rule")),
            );
        }
        if let Some(PathProtection::Closed(why)) = self.guarded {
            return LayerVerdict::deny("built-in", why.clone());
        }
        let inside = self.context.in_workspace(path);
        let listed = rules.allowed.as_ref().map(|allowed| allowed.matching_line(path));
        // The user may read their own skills, unless an administrator or the project lists the readable paths.
        let is_skill = || !scope.limits_skills() && self.access == FileAccess::Read && self.context.is_in_skill(path);
        if listed == Some(None) && !is_skill() {
            let place = if inside { "is not in `allowed_paths`" } else { "is outside the workspace" };
            return LayerVerdict::deny(scope.rule(files.allowed_line), format!("`{given}` {place}"));
        }
        if let Some(PathProtection::Opened(rule)) = self.guarded {
            return LayerVerdict::ask(rule.clone(), format!("{verb} a protected path that the policy unprotects"))
                .not_grantable();
        }
        if let Some(owned) = rule(RuleDecision::Ask) {
            return LayerVerdict::ask(named(owned), reason(&owned.rule.rule.reason, "a rule requires approval"));
        }
        // Without an allow list, an allow rule covers only paths in the workspace.
        if let Some(owned) = rule(RuleDecision::Allow)
            && (inside || listed.is_some())
        {
            return LayerVerdict::allow(named(owned), reason(&owned.rule.rule.reason, "allowed by a rule"));
        }
        if files.requires_approval {
            let asked = LayerVerdict::ask(scope.rule(files.approval_line), format!("{verb} a file"));
            return LayerVerdict { is_uncovered: true, ..asked };
        }
        if listed == Some(None) {
            return LayerVerdict::allow("built-in", "reads a file in one of your skills");
        }
        let line = listed.flatten().unwrap_or(files.line);
        LayerVerdict::allow(scope.rule(line), format!("{verb} a file, as the policy allows"))
    }
}

/// Protection of a path: either in effect, with the reason, or lifted by a rule of the user or an administrator.
enum PathProtection {
    Closed(String),
    Opened(String),
}

/// Returns how a path in a protected location is protected. A policy layer may lift the protection.
fn guard(access: FileAccess, path: &Path, layers: &[CompiledLayer], context: &Context) -> Option<PathProtection> {
    if access == FileAccess::Read {
        return to_be_read(path, layers, context);
    }
    let place = protected(path, context)?;
    let may = |layer: &&CompiledLayer| place.may_be_opened && layer.scope.grants();
    let opens = |layer: &CompiledLayer| Some(layer.scope.rule(access.rules(layer)?.unprotected.matching_line(path)?));
    let opened = layers.iter().filter(may).find_map(opens);
    Some(opened.map_or_else(|| PathProtection::Closed(place.reason()), PathProtection::Opened))
}

/// Returns how credentials are protected from being read. The protection is in effect unless the user or an
/// administrator lists the path itself; a pattern such as `~` does not lift it for `~/.ssh`.
fn to_be_read(path: &Path, layers: &[CompiledLayer], context: &Context) -> Option<PathProtection> {
    let found = credentials(path, context)?;
    let names = |layer: &CompiledLayer| Some(layer.read.as_ref()?.allowed.as_ref()?.names(&found.place, path));
    let named = layers.iter().filter(|layer| layer.scope.grants()).any(|layer| names(layer) == Some(true));
    (!named).then(|| PathProtection::Closed(found.reason()))
}

/// Returns whether an entry may be read, provided that its directory may be read. Checks only the entry itself, because
/// rules that deny a directory also deny its entries, and lists that contain a directory also apply to its entries. A
/// search calls this function for every file.
pub(crate) fn is_entry_readable(path: &Path, layers: &[CompiledLayer], context: &Context, now: Timestamp) -> bool {
    let shut = |layer: &CompiledLayer| {
        layer.read.as_ref().is_some_and(|rules| {
            let denies = |owned: &ScopedRule<PathRule>| {
                let rule = &owned.rule.rule;
                rule.decision == RuleDecision::Deny && is_in_effect(rule.expires_at, now) && owned.rule.places.reaches_entry(path)
            };
            rules.blocked.reaches_entry(path)
                || rules.rules.iter().any(denies)
                || rules.excluded.iter().any(|list| list.excludes_entry(path))
        })
    };
    let in_the_machine =
        ["/proc/", "/dev/"].iter().any(|place| path.as_os_str().as_encoded_bytes().starts_with(place.as_bytes()));
    let is_own = context.own.iter().any(|own| own.as_os_str() == path.as_os_str());
    let is_closed = || matches!(to_be_read(path, layers, context), Some(PathProtection::Closed(_)));
    if is_own || (in_the_machine && is_process_path(path, false)) || layers.iter().any(shut) {
        return false;
    }
    is_deeper_than_credentials(path, context) || !is_closed()
}

/// Returns whether a path that contains credentials is protected because no policy layer with the necessary rights
/// lists it.
pub(crate) fn is_blocked_as_credentials(place: &Path, layers: &[CompiledLayer], context: &Context) -> bool {
    matches!(to_be_read(place, layers, context), Some(PathProtection::Closed(_)))
}
