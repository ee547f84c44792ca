//! Reaches verdicts on actions by combining policy layers, modes, grants and the sandbox.

mod approve;
mod escalation;
mod grants;
mod layer_rules;
mod layer_stack;
mod mandate;
mod origins;
mod outer;
mod sandbox_requirements;
mod spending;
mod unsandboxed;
mod user_rule;

pub use sandbox_requirements::{EntryProtection, ProtectionRules, SandboxRequirements};
pub use spending::LowestLimit;

use super::bundle::{ApprovalRule, Approve, EnvironmentTerms, ModelLimits, NamedCommand, Preview, SandboxSetting, Terms};
use super::command::{self, CommandContext, MANDATE, NAMED_IN_PLAN};
use super::custom::{self, Custom};
use super::effective::{EffectiveSetting, entries};
use super::excluded::ExcludedPaths;
use super::files::{self, FileAccess};
use super::guard;
use super::invoke::{self, Offered};
use super::layer::{CompiledLayer, Layer};
use super::layer_verdict::{ActionFinding, LayerVerdict, next_higher};
use super::limit::ToolLimit;
use super::named::{self, FilledCommand};
use super::opening;
use super::paths::{Context, PathPatterns, Sandbox};
use super::permit::{Denial, Grant, Permit, Question, UnaskedConditions, Verdict};
use super::program_kinds::runs_repository_programs;
use super::remembered_hosts::remembered_hosts;
use super::search::{self, SearchText};
use super::{request, upload};
use crate::protocol::action::NAMED;
use crate::protocol::{
    Action, ApproveWhen, CommandPart, Coverage, Mode, Place, PolicyLayer, Risk, RuleOrigin, SandboxAccess, Target, VerdictKind,
};
use approve::ApproveSetting;
use jiff::Timestamp;
use layer_stack::EnforcerLayers;
use sandbox_requirements::RequirementSource;
use serde::{Serialize, Serializer};
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Arc;
use std::time::Duration;

const NO_SANDBOX: &str = "this system cannot sandbox the command, so aye asks";
const UNHELD_REPOSITORY: &str =
    "runs programs named in the repository's configuration (filters, hooks), and this system has no sandbox, so aye asks";

const MIXES_GIT: &str = "git writes to the repository, so the line cannot run in a copy, and it also runs other programs or \
                         writes files";
const NAMES_HIDDEN_PATH: &str = "the line names a path that is hidden from commands that run without approval";

const NOT_IN_A_COPY: &str = "a plan covers only commands that can run in a copy of the workspace, and this one cannot";

/// Judges actions. The strictest verdict of its policy layers applies.
#[derive(Debug, Clone)]
pub struct Enforcer {
    /// Policy layers, shared by all clones of an enforcer because a policy can contain thousands of rules.
    stack: Arc<EnforcerLayers>,
    context: Context,
    grants: Vec<Grant>,
    /// Grants of the running task's approved plan.
    mandate: Vec<Grant>,
    /// Limits on tools that apply in addition to the layers.
    limits: Vec<ToolLimit>,
    /// Shell that runs the commands, if it is not `bash`.
    other_shell: Option<&'static str>,
    /// Whether the user does not trust the project. If set, mode `auto` does not run commands without approval.
    is_distrusted: bool,
    approve: ApproveSetting,
    /// Enforcer of the parent session. Each action is judged by both enforcers.
    outer: Option<Arc<Self>>,
}

/// A verdict and how it was reached, as printed by `aye policy check`.
#[derive(Debug, Clone, Serialize)]
pub struct Explanation {
    pub verdict: VerdictKind,
    pub rule: String,
    pub reason: String,
    pub risk: Risk,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub critical: bool,
    pub parts: Vec<CommandPart>,
    /// Condition under which the verdict allows the action, such as `sandbox`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<&'static str>,
    /// Whether the capability requires approval only because no rule matched.
    #[serde(skip)]
    is_uncovered: bool,
    /// When a command is approved. `None` if the command needs no approval or the call is not a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approve: Option<ApproveWhen>,
    /// Hosts that the command may connect to without a prompt when it runs in a copy of the workspace.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "as_texts")]
    pub hosts: Vec<SandboxAccess>,
    #[serde(skip)]
    head: ApprovalRule,
    /// Grant that the user can save.
    #[serde(skip)]
    remember: Option<Grant>,
    /// Conditions of an allow verdict, which are passed on to the permit.
    #[serde(skip)]
    unasked: UnaskedConditions,
    /// Whether only the mode or the approved plan allows the command. Such a command first runs in a copy of the
    /// workspace.
    #[serde(skip)]
    in_layer: bool,
    /// Whether the approved plan allows the command.
    #[serde(skip)]
    by_plan: bool,
}

/// Formats hosts with their ports, such as `index.example.com:443`.
fn as_texts<S: Serializer>(places: &[SandboxAccess], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(places.iter().map(ToString::to_string))
}

impl Explanation {
    /// Returns a denial for a call that can never run because its arguments are invalid.
    pub fn unreadable(reason: String) -> Self {
        Self::from_denial(Denial { rule: "built-in".to_owned(), reason, parts: Vec::new() })
    }

    /// Converts the denial of a call that was rejected before its targets were examined.
    pub fn from_denial(denial: Denial) -> Self {
        Self {
            verdict: VerdictKind::Deny,
            rule: denial.rule,
            reason: denial.reason,
            risk: Risk::Low,
            critical: false,
            parts: Vec::new(),
            needs: None,
            is_uncovered: false,
            approve: None,
            hosts: Vec::new(),
            head: ApprovalRule { title: String::new(), description: None },
            remember: None,
            unasked: UnaskedConditions::default(),
            in_layer: false,
            by_plan: false,
        }
    }

    fn question(self, actions: &[Action], reads_only: bool) -> Question {
        Question {
            actions: actions.to_vec(),
            title: self.head.title,
            description: self.head.description,
            rule: self.rule,
            reason: self.reason,
            risk: self.risk,
            critical: self.critical,
            parts: self.parts,
            is_uncovered: self.is_uncovered,
            reads_only,
            approve: self.approve.unwrap_or_default(),
            hosts: self.hosts,
            unsandboxed: false,
        }
    }
}

impl Enforcer {
    pub fn new(layers: Vec<Layer>, context: Context) -> Self {
        let stack = Arc::new(EnforcerLayers::new(layers, &context));
        let (grants, mandate, limits) = (Vec::new(), Vec::new(), Vec::new());
        let approve = ApproveSetting::default();
        Self { stack, context, grants, mandate, limits, other_shell: None, is_distrusted: false, approve, outer: None }
    }

    /// Sets the limits on tools.
    pub fn with_limits(self, limits: Vec<ToolLimit>) -> Self {
        Self { limits, ..self }
    }

    /// Excludes these files from all tools.
    #[must_use]
    pub fn excluding(mut self, excluded: Vec<ExcludedPaths>) -> Self {
        if !excluded.is_empty() {
            Arc::make_mut(&mut self.stack).exclude(excluded, &self.context);
        }
        self
    }

    /// Configures the enforcer for a shell other than `bash`. Rules are written for `bash`, so commands that they allow
    /// still need approval.
    #[must_use]
    pub fn with_shell(mut self, name: &'static str) -> Self {
        self.other_shell = Some(name);
        self
    }

    /// Configures the enforcer for an untrusted project. Commands that are allowed only by mode `auto` still need
    /// approval, because they could start the project's programs.
    #[must_use]
    pub fn for_untrusted_project(mut self) -> Self {
        self.is_distrusted = true;
        self
    }

    /// Restricts the enforcer to actions that `outer`, the enforcer of the parent session, allows too. The plan of the
    /// parent session does not apply to its agents.
    #[must_use]
    pub fn within(mut self, mut outer: Self) -> Self {
        outer.end_mandate();
        self.outer = Some(Arc::new(outer));
        self
    }

    /// Returns whether the outer enforcer allows something, or `true` if there is no outer enforcer.
    fn outer_allows(&self, allows: impl FnOnce(&Self) -> bool) -> bool {
        self.outer.as_ref().is_none_or(|outer| allows(outer))
    }

    /// Runs a check on the outer enforcer and returns its error. Returns `Ok` if there is no outer enforcer.
    fn check_outer<E>(&self, check: impl FnOnce(&Self) -> Result<(), E>) -> Result<(), E> {
        self.outer.as_ref().map_or(Ok(()), |outer| check(outer))
    }

    /// Returns the verdict on a tool call.
    pub fn judge_call(&self, tool_name: &str, actions: &[Action], now: Timestamp) -> Verdict {
        match self.offers(tool_name) {
            Ok(()) => self.judge(actions, now),
            Err(denial) => Verdict::Deny(denial),
        }
    }

    /// Returns an error if a tool is disabled. Tools of MCP servers are named `Mcp.SERVER/TOOL`.
    pub fn offers(&self, tool_name: &str) -> Result<(), Denial> {
        self.check_outer(|outer| outer.offers(tool_name))?;
        let disables = |layer: &CompiledLayer| {
            let pattern = layer.bundle.disabled.iter().find(|pattern| pattern.hits(tool_name))?;
            Some(layer.scope.rule(pattern.line))
        };
        let Some(rule) = self.stack.compiled_layers().iter().find_map(disables) else {
            return self.limits.iter().find_map(|limit| limit.denies(tool_name)).map_or(Ok(()), Err);
        };
        Err(Denial { rule, reason: format!("the tool `{tool_name}` is disabled"), parts: Vec::new() })
    }

    /// Returns an error if a server's tool must not be shown to the model. A tool that is shown may still need
    /// approval.
    pub fn lists(&self, server: &str, tool: &str, now: Timestamp) -> Result<(), Denial> {
        self.check_outer(|outer| outer.lists(server, tool, now))?;
        let offered = Offered { server, tool, fingerprint: "", changed: false };
        self.offers(&offered.full_name())?;
        let LayerVerdict { verdict, rule, reason, .. } = invoke::judge(&offered, self.stack.compiled_layers(), now).decided;
        if verdict == VerdictKind::Deny { Err(Denial { rule, reason, parts: Vec::new() }) } else { Ok(()) }
    }

    /// Returns whether the policy permits any tool of a server to be shown to the model.
    pub fn lists_any(&self, server: &str) -> bool {
        self.grants(invoke::capability(server))
            && self.outer_allows(|outer| outer.lists_any(server))
            && self.stack.compiled_layers().iter().all(|layer| invoke::may_list(server, layer))
    }

    /// Judges reading a server's resources like calling a tool that changes nothing. Returns the reason if approval is
    /// needed, `Ok(None)` if it is not, and the denial as an error.
    pub fn may_read_of(&self, server: &str, now: Timestamp) -> Result<Option<String>, Denial> {
        let outer = self.outer.as_ref().map(|outer| outer.may_read_of(server, now)).transpose()?.flatten();
        let offered = Offered { server, tool: invoke::READING, fingerprint: "", changed: false };
        self.offers(&offered.full_name())?;
        let finding = ActionFinding { reads_only: true, ..invoke::judge(&offered, self.stack.compiled_layers(), now) };
        let LayerVerdict { verdict, rule, reason, .. } = self.apply_grants_and_mode(false, finding).decided;
        match verdict {
            VerdictKind::Allow => Ok(outer),
            VerdictKind::Ask => Ok(Some(format!("{reason} (rule: {rule})"))),
            VerdictKind::Deny => Err(Denial { rule, reason, parts: Vec::new() }),
        }
    }

    /// Returns whether approval is needed before a server may send a prompt to the session's model. Returns the denial
    /// as an error if the server may not send prompts at all.
    pub fn may_sample(&self, server: &str) -> Result<bool, Denial> {
        let outer_asks = self.outer.as_ref().map_or(Ok(false), |outer| outer.may_sample(server))?;
        let LayerVerdict { verdict, rule, reason, .. } = invoke::sampling(server, self.stack.compiled_layers());
        if verdict == VerdictKind::Deny {
            return Err(Denial { rule, reason, parts: Vec::new() });
        }
        Ok(outer_asks || verdict == VerdictKind::Ask)
    }

    /// Returns a request for approval of a call, even if a rule would allow the call. `reason` is shown to the user.
    /// Returns the denial as an error if the call is not permitted at all.
    pub fn ask_call(&self, tool_name: &str, actions: &[Action], now: Timestamp, reason: String) -> Result<Question, Denial> {
        self.offers(tool_name)?;
        let told = self.explain(actions, now);
        match told.verdict {
            VerdictKind::Allow | VerdictKind::Ask => {
                // The approval always precedes the call, whatever the policy says about timing.
                let told = Explanation { approve: None, hosts: Vec::new(), ..told };
                Ok(Question { reason, is_uncovered: false, ..told.question(actions, self.context.mode == Mode::Plan) })
            }
            VerdictKind::Deny => Err(Denial { rule: told.rule, reason: told.reason, parts: told.parts }),
        }
    }

    /// Returns the verdict on these actions.
    pub fn judge(&self, actions: &[Action], now: Timestamp) -> Verdict {
        let told = self.explain(actions, now);
        let reads_only = self.is_in_plan_mode();
        match told.verdict {
            VerdictKind::Allow => {
                let permit = Permit::new(actions.to_vec(), told.rule).restrict_to_reading(reads_only).mark_unasked(told.unasked);
                Verdict::Allow(if told.in_layer { permit.first_in_layer(told.by_plan) } else { permit })
            }
            VerdictKind::Ask => Verdict::Ask(told.question(actions, reads_only)),
            VerdictKind::Deny => Verdict::Deny(Denial { rule: told.rule, reason: told.reason, parts: told.parts }),
        }
    }

    /// Returns whether this enforcer or an outer enforcer is in plan mode.
    fn is_in_plan_mode(&self) -> bool {
        self.context.mode == Mode::Plan || self.outer.as_ref().is_some_and(|outer| outer.is_in_plan_mode())
    }

    /// Returns the verdict and how it was reached. A panic during evaluation results in a denial, so a bug cannot allow
    /// an action.
    pub fn explain(&self, actions: &[Action], now: Timestamp) -> Explanation {
        let own = guard::catch_panic(|| self.explain_actions(actions, now)).unwrap_or_else(|| {
            let denial = Denial { rule: "built-in".to_owned(), reason: guard::FAILED.to_owned(), parts: Vec::new() };
            Explanation { risk: Risk::High, ..Explanation::from_denial(denial) }
        });
        match &self.outer {
            Some(outer) => outer::stricter(own, outer.explain(actions, now)),
            None => own,
        }
    }

    fn explain_actions(&self, actions: &[Action], now: Timestamp) -> Explanation {
        if let Some(reason) = self.stack.expiry_reason(now) {
            let over = |layer: &&CompiledLayer| layer.bundle.expires_at.is_some_and(|end| end <= now);
            let layer = self.stack.compiled_layers().iter().find(over);
            let rule = layer.map_or_else(String::new, |layer| layer.scope.rule(layer.bundle.line_number("", "expires_at")));
            return self.explain_finding(finding_of(LayerVerdict::deny(rule, reason)), actions, None);
        }
        let mut whole: Option<ActionFinding> = None;
        for action in actions {
            let one = self.judge_action(action, now);
            whole = Some(match whole {
                None => one,
                Some(whole) => merge(whole, one),
            });
        }
        // A call without actions needs no permission.
        let whole = whole.unwrap_or_else(|| finding_of(LayerVerdict::allow("built-in", "the call has no effects")));
        let shell = actions.iter().any(Action::is_command);
        let needs =
            (shell && whole.decided.verdict == VerdictKind::Allow && self.sandbox() != SandboxSetting::Off).then_some("sandbox");
        let mut told = self.explain_finding(whole, actions, needs);
        if let ([Action::Exec { command, cwd }], Some(ApproveWhen::Effects)) = (actions, told.approve) {
            told.hosts = remembered_hosts(command, cwd, &self.scene(cwd, now));
        }
        told
    }

    /// Returns whether a file action is denied. Faster than `explain` for many files.
    pub fn denies_file(&self, action: &Action, now: Timestamp) -> bool {
        let (access, target) = match action {
            Action::Read { target } => (FileAccess::Read, target),
            Action::Write { target } => (FileAccess::Write, target),
            Action::Delete { target } => (FileAccess::Delete, target),
            _ => return self.explain(slice::from_ref(action), now).verdict == VerdictKind::Deny,
        };
        if self.stack.expiry_reason(now).is_some() || (access != FileAccess::Read && self.context.mode == Mode::Plan) {
            return true;
        }
        if !self.outer_allows(|outer| !outer.denies_file(action, now)) {
            return true;
        }
        let denied = || files::denies(access, action, target, self.stack.compiled_layers(), &self.context, now);
        guard::catch_panic(denied).unwrap_or(true)
    }

    /// Returns whether an entry of a readable directory may be read because no rule denies it. Faster than `explain`
    /// for many entries.
    pub fn is_entry_readable(&self, path: &Path, now: Timestamp) -> bool {
        files::is_entry_readable(path, self.stack.compiled_layers(), &self.context, now)
            && self.outer_allows(|outer| outer.is_entry_readable(path, now))
    }

    fn explain_finding(&self, mut finding: ActionFinding, actions: &[Action], needs: Option<&'static str>) -> Explanation {
        let is_line = |action: &Action| matches!(action, Action::Exec { .. });
        let as_reading = finding.reads_only && !actions.is_empty() && actions.iter().all(is_line);
        let timing = self.approve.timing(&finding, actions, &self.context, &self.stack);
        let by_plan = finding.decided.verdict == VerdictKind::Allow && finding.decided.by_plan;
        if by_plan && !as_reading && timing != Some(ApproveWhen::Effects) {
            finding.decided = LayerVerdict::ask(MANDATE, NOT_IN_A_COPY);
        }
        if !as_reading && self.approve.asks_about_git(&finding, actions, &self.context, &self.stack) {
            finding.decided = LayerVerdict::ask("built-in", MIXES_GIT);
        }
        if !as_reading && self.approve.asks_about_hidden_path(&finding, actions, &self.context, &self.stack) {
            finding.decided = LayerVerdict::ask("built-in", NAMES_HIDDEN_PATH);
        }
        let head = self.head(&finding.decided, actions.first());
        let unasked = UnaskedConditions { as_reading, by_name: finding.decided.by_name };
        let asks = finding.decided.verdict == VerdictKind::Ask;
        Explanation {
            verdict: finding.decided.verdict,
            rule: finding.decided.rule,
            reason: finding.decided.reason,
            risk: finding.risk,
            critical: finding.critical,
            parts: finding.parts,
            needs: needs.filter(|_| !asks),
            is_uncovered: finding.decided.is_uncovered,
            approve: timing.filter(|_| asks),
            hosts: Vec::new(),
            head,
            remember: finding.remember,
            unasked,
            in_layer: !asks && !as_reading && timing == Some(ApproveWhen::Effects),
            by_plan: !asks && by_plan,
        }
    }

    /// Returns the title and description for an approval prompt. They come from the bundle, or else depend on the kind
    /// of action.
    fn head(&self, decided: &LayerVerdict, action: Option<&Action>) -> ApprovalRule {
        let named = decided.approval_rule.as_ref().and_then(|name| {
            self.stack.compiled_layers().iter().find_map(|layer| layer.bundle.approval_rules.get(name).cloned())
        });
        let otherwise = match action {
            None => "Tool call",
            Some(Action::Read { .. }) => "Read",
            Some(Action::Write { .. }) => "File change",
            Some(Action::Delete { .. }) => "Delete",
            Some(Action::Exec { .. }) => "Command",
            Some(Action::Fetch { .. }) => "Request",
            Some(Action::Search { .. }) => "Web search",
            Some(Action::Named { .. }) => "Named command",
            Some(Action::Invoke { .. }) => "Tool",
            Some(Action::Custom { .. }) => "Custom tool",
            Some(Action::Open { .. }) => "Open",
            Some(Action::Upload { .. }) => "Upload",
        };
        named.unwrap_or_else(|| ApprovalRule { title: otherwise.to_owned(), description: None })
    }

    fn judge_action(&self, action: &Action, now: Timestamp) -> ActionFinding {
        let (access, target) = match action {
            Action::Read { target } => (FileAccess::Read, target),
            Action::Write { target } => (FileAccess::Write, target),
            Action::Delete { target } => (FileAccess::Delete, target),
            Action::Exec { command, cwd } => {
                let finding = self.read_otherwise(self.require_sandbox(command::judge(command, cwd, &self.scene(cwd, now))));
                return self.require_trust(finding);
            }
            Action::Fetch { url, method } => {
                return self.reached(request::judge(url, method, self.stack.compiled_layers(), self.context.mode));
            }
            Action::Search { query, domains, service, host: _ } => {
                return search::judge(&SearchText { query, domains, service }, self.stack.compiled_layers(), now);
            }
            Action::Named { name, argv, cwd: _, inputs, paths } => {
                let filled = FilledCommand { name, argv, inputs, paths };
                return self.require_sandbox(
                    self.apply_grants_and_mode(false, named::judge(&filled, self.stack.compiled_layers(), &self.context, now)),
                );
            }
            Action::Open { target } => {
                return self
                    .apply_grants_and_mode(false, opening::judge(target, self.stack.compiled_layers(), &self.context, now));
            }
            Action::Upload { target } => {
                return self
                    .apply_grants_and_mode(false, upload::judge(target, self.stack.compiled_layers(), &self.context, now));
            }
            Action::Custom { name, argv, cwd, input, fingerprint, known, reads_only } => {
                let holds = self.context.sandbox == Sandbox::Present && self.sandbox() != SandboxSetting::Off;
                let reads_only = *reads_only && holds;
                let custom = Custom { name, argv, input: input.as_deref(), fingerprint, known: *known, reads_only };
                return self
                    .require_sandbox(self.apply_grants_and_mode(false, custom::judge(&custom, cwd, &self.scene(cwd, now))));
            }
            Action::Invoke { server, tool, fingerprint, changed } => {
                let offered = Offered { server, tool, fingerprint, changed: *changed };
                return match self.offers(&offered.full_name()) {
                    Ok(()) => self.apply_grants_and_mode(false, invoke::judge(&offered, self.stack.compiled_layers(), now)),
                    Err(denial) => finding_of(LayerVerdict::deny(denial.rule, denial.reason)),
                };
            }
        };
        self.apply_grants_and_mode(
            access == FileAccess::Write,
            files::judge(access, action, target, self.stack.compiled_layers(), &self.context, now),
        )
    }

    /// Returns a request for approval to run a command line once outside the sandbox.
    ///
    /// # Errors
    /// Returns the reason if the command line may not run outside the sandbox.
    pub fn ask_unsandboxed(&self, tool_name: &str, actions: &[Action], now: Timestamp) -> Result<Question, String> {
        if self.outer.is_some() {
            return Err("an agent cannot run commands outside the sandbox".to_owned());
        }
        unsandboxed::question(self, tool_name, actions, now)
    }

    /// Returns the directory in which the commands in a line run: the workspace directory that the line first changes
    /// to, or else `cwd`.
    pub fn command_directory(&self, line: &str, cwd: &Target) -> PathBuf {
        command::command_directory(line, &self.scene(cwd, Timestamp::UNIX_EPOCH))
    }

    fn scene<'a>(&'a self, cwd: &'a Target, now: Timestamp) -> CommandContext<'a> {
        let (grants, mandate) = (self.grants.as_slice(), self.mandate.as_slice());
        CommandContext { layers: self.stack.compiled_layers(), context: &self.context, cwd: &cwd.real, now, grants, mandate }
    }

    /// Accounts for a missing sandbox. Commands that would be allowed need approval unless the user turned the sandbox
    /// off, and every risk is raised by one level.
    fn require_sandbox(&self, mut finding: ActionFinding) -> ActionFinding {
        let by_person = !finding.parts.is_empty() && finding.parts.iter().all(|part| self.stack.is_user_decision(&part.rule));
        let unheld = self.context.sandbox == Sandbox::Absent && self.sandbox() != SandboxSetting::Off;
        if unheld {
            finding.risk = next_higher(finding.risk);
            finding.parts.iter_mut().for_each(|part| part.risk = next_higher(part.risk));
        }
        if finding.decided.verdict == VerdictKind::Allow && unheld && !by_person {
            if finding.remember.as_ref().is_some_and(|grant| self.grants.contains(grant)) {
                finding.decided = LayerVerdict::allow("session", "allowed by you until aye quits").named_by_program();
            } else {
                let obeys = |part: &CommandPart| part.text.split_whitespace().next().is_some_and(runs_repository_programs);
                let reason = if finding.parts.iter().any(obeys) { UNHELD_REPOSITORY } else { NO_SANDBOX };
                let (verdict, approve, in_a_copy) = (VerdictKind::Ask, Approve::Command, false);
                finding.decided = LayerVerdict { verdict, approve, in_a_copy, reason: reason.to_owned(), ..finding.decided };
            }
        }
        finding
    }

    /// Changes an allow verdict to an ask verdict if a different shell may parse the line differently.
    fn read_otherwise(&self, mut finding: ActionFinding) -> ActionFinding {
        let Some(name) = self.other_shell else { return finding };
        finding.remember = None;
        if finding.decided.verdict == VerdictKind::Allow {
            let reason = format!("rules are written for bash, but `{name}` runs the command");
            finding.decided = LayerVerdict { verdict: VerdictKind::Ask, approve: Approve::Command, reason, ..finding.decided };
        }
        (finding.decided.approve, finding.decided.in_a_copy) = (Approve::Command, false);
        finding
    }

    /// Changes an allow verdict that only the mode gave to an ask verdict if the command could start a program of an
    /// untrusted project.
    fn require_trust(&self, mut finding: ActionFinding) -> ActionFinding {
        let by_mode = finding.decided.verdict == VerdictKind::Allow && finding.decided.by_mode;
        if self.is_distrusted && by_mode && !finding.reads_only {
            let (rule, reason) =
                ("untrusted project".to_owned(), "commands need approval until the project is trusted".to_owned());
            finding.decided =
                LayerVerdict { verdict: VerdictKind::Ask, approve: Approve::Command, rule, reason, ..finding.decided };
            (finding.decided.by_mode, finding.decided.in_a_copy) = (false, false);
        }
        finding
    }

    /// Returns, for each action in a plan, whether approving the plan would allow it. The result does not depend on the
    /// mode or on grants made in this run.
    pub fn coverage(&self, actions: &[Action], now: Timestamp) -> Vec<Coverage> {
        let trial = mandate::for_mandate(self);
        let cover = |action| mandate::cover(&trial, action, now).map_or_else(|coverage| coverage, |_| Coverage::Covered);
        actions.iter().map(cover).collect()
    }

    /// Sets the mandate to those actions of an approved plan that the policy lets a plan allow. Replaces the mandate of
    /// an earlier plan.
    pub fn set_mandate(&mut self, actions: &[Action], now: Timestamp) {
        let trial = mandate::for_mandate(self);
        self.mandate = actions.iter().filter_map(|action| mandate::cover(&trial, action, now).ok()).collect();
    }

    pub fn end_mandate(&mut self) {
        self.mandate.clear();
    }

    /// Returns whether the approved plan names a change that a command made in a copy of the workspace. The plan names
    /// the files that it lists and the files in the arguments of the permitted command.
    pub fn plan_names(&self, permit: &Permit, change: &Action, now: Timestamp) -> bool {
        mandate::names(self, permit.actions(), change, now)
    }

    /// Returns whether a mandate is in effect.
    pub fn has_mandate(&self) -> bool {
        !self.mandate.is_empty()
    }

    /// If the user granted the action until aye exits or by approving a plan, returns the rule name and the reason.
    fn granted_by(&self, grant: &Grant) -> Option<(&'static str, &'static str)> {
        if self.grants.contains(grant) {
            return Some(("session", "allowed by you until aye quits"));
        }
        self.mandate.contains(grant).then_some((MANDATE, NAMED_IN_PLAN))
    }

    /// Applies session grants and the mandate to a request whose verdict already takes the mode into account.
    fn reached(&self, mut finding: ActionFinding) -> ActionFinding {
        let asks = finding.decided.is_question() && !finding.decided.locked;
        let granted = finding.remember.as_ref().filter(|_| asks).and_then(|grant| self.granted_by(grant));
        if let Some((rule, reason)) = granted {
            finding.decided = LayerVerdict::allow(rule, reason);
        }
        finding
    }

    /// Applies session grants, the mandate and the mode to a verdict.
    fn apply_grants_and_mode(&self, writes: bool, mut finding: ActionFinding) -> ActionFinding {
        let mode = self.context.mode;
        if mode == Mode::Plan && !finding.reads_only && finding.decided.verdict != VerdictKind::Deny {
            finding.decided = LayerVerdict::deny("plan mode", "plan mode allows no changes");
            return finding;
        }
        if finding.decided.verdict != VerdictKind::Ask || finding.decided.locked {
            return finding;
        }
        let granted = finding.remember.as_ref().and_then(|grant| self.granted_by(grant));
        let by_mode = match mode {
            Mode::Plan | Mode::Ask => false,
            Mode::AutoEdit => writes && finding.risk <= Risk::Medium,
            Mode::Auto => finding.risk <= Risk::Medium,
        };
        if let Some((rule, reason)) = granted {
            finding.decided = LayerVerdict::allow(rule, reason);
        } else if by_mode {
            finding.decided = finding.decided.allowed_by_mode(mode);
        }
        finding
    }

    /// Returns whether the mode permits these effects of a command to be applied without approval. A deletion is
    /// treated as a change, because the caller excludes deletions that cannot be undone.
    pub fn applies_effects(&self, actions: &[Action], now: Timestamp) -> bool {
        let applies = |action: &Action| {
            let is_allowed = |action: &Action| self.explain(slice::from_ref(action), now).verdict == VerdictKind::Allow;
            match action {
                Action::Delete { target } if self.context.mode == Mode::Auto => {
                    is_allowed(action)
                        || self.asks_only_by_default(action, now) && is_allowed(&Action::Write { target: target.clone() })
                }
                _ => is_allowed(action),
            }
        };
        self.context.mode > Mode::Ask
            && actions.iter().all(applies)
            && self.outer_allows(|outer| outer.applies_effects(actions, now))
    }

    /// Returns whether an action requires approval only because that is the default for its capability.
    fn asks_only_by_default(&self, action: &Action, now: Timestamp) -> bool {
        let finding = self.judge_action(action, now);
        finding.decided.is_question() && finding.decided.is_uncovered && !finding.decided.locked && !finding.critical
    }

    /// Returns whether the policy grants a capability at all.
    pub fn grants(&self, capability: &str) -> bool {
        if !self.outer_allows(|outer| outer.grants(capability)) {
            return false;
        }
        if capability == NAMED {
            return self.named_commands().next().is_some();
        }
        let layers = self.stack.compiled_layers();
        layers.iter().any(|layer| layer.scope.grants()) && !layers.iter().any(|layer| layer.refuses(capability))
    }

    /// Returns the named commands. If several policy layers define the same name, the strongest one applies.
    pub fn named_commands(&self) -> impl Iterator<Item = &NamedCommand> {
        named::distinct_commands(self.stack.compiled_layers())
    }

    /// Returns an error if a connection for this URL may not be made to the resolved address.
    pub fn may_connect(&self, url: &str, address: core::net::IpAddr) -> Result<(), String> {
        self.check_outer(|outer| outer.may_connect(url, address))?;
        request::may_connect(url, address, self.stack.compiled_layers())
    }

    /// Returns each policy layer's limits on models, all of which apply.
    pub fn llm(&self) -> impl Iterator<Item = &ModelLimits> {
        self.stack.compiled_layers().iter().map(|layer| &layer.bundle.llm)
    }

    /// Returns an error if the model `PROVIDER/NAME` may not be called.
    pub fn check_model(&self, model: &str) -> Result<(), Denial> {
        self.check_outer(|outer| outer.check_model(model))?;
        let Some(layer) = self.stack.compiled_layers().iter().find(|layer| !layer.bundle.llm.allows(model)) else {
            return Ok(());
        };
        let rule = layer.scope.rule(layer.bundle.llm.models_line);
        Err(Denial { rule, reason: format!("the policy does not allow the model `{model}`"), parts: Vec::new() })
    }

    /// Returns the sandbox terms for commands, using the strictest value from all policy layers.
    pub fn terms(&self) -> &Terms {
        self.stack.terms()
    }

    /// Returns the environment variables passed to commands, which are those that every policy layer allows.
    pub fn environment(&self) -> EnvironmentTerms {
        self.terms().environment.clone().unwrap_or_default()
    }

    /// Returns the redactions of all policy layers. No layer can remove another layer's redactions.
    pub fn redactions(&self) -> Vec<super::redact::RedactionRule> {
        self.stack.compiled_layers().iter().flat_map(|layer| layer.bundle.redactions.iter().cloned()).collect()
    }

    /// Returns the sandbox setting: the strictest one set by any policy layer.
    pub fn sandbox(&self) -> SandboxSetting {
        self.terms().sandbox.unwrap_or_default()
    }

    /// Returns whether commands first run in a copy-on-write view.
    pub fn preview(&self) -> Preview {
        self.terms().preview.unwrap_or_default()
    }

    /// Replaces the policy layers with those of `new`. The user's choices in this run (the mode and the session grants)
    /// are preserved.
    pub fn replace(&mut self, new: Self) {
        let mode = self.context.mode;
        self.context = new.context;
        self.context.mode = mode;
        self.limits = new.limits;
        self.other_shell = new.other_shell;
        self.is_distrusted = new.is_distrusted;
        self.approve.config = new.approve.config;
        self.outer = new.outer;
        Arc::make_mut(&mut self.stack).replace(Arc::unwrap_or_clone(new.stack), &self.context);
    }

    pub fn mode(&self) -> Mode {
        self.context.mode
    }

    pub fn set_mode(&mut self, mode: Mode) {
        self.context.mode = mode;
    }

    /// Sets the value of `approve` from `config.toml`.
    #[must_use]
    pub fn approving(mut self, config: Option<Approve>) -> Self {
        self.approve.config = config;
        self
    }

    /// Sets whether the user approves commands or their effects in this session. A policy with `approve = "command"`
    /// takes precedence.
    pub fn set_approve(&mut self, approve: Approve) {
        self.approve.session = Some(approve);
    }

    /// Returns whether the user approves a command or its effects when no rule matches.
    pub fn approve(&self) -> Approve {
        self.approve.effective(self.terms())
    }

    /// Returns a summary of each policy layer in effect, strongest first.
    pub fn layers(&self) -> Vec<PolicyLayer> {
        self.stack.summaries()
    }

    /// Returns the timeout for pending approvals: the shortest one set by any policy layer.
    pub fn approval_timeout(&self) -> Option<Duration> {
        self.stack.approval_timeout()
    }

    /// Returns the highest risk that the approval service may approve, or `None` if it may not approve anything.
    pub fn service_risk(&self) -> Option<Risk> {
        self.stack.service_risk()
    }

    /// Returns the reason to deny every action because a bundle has expired, or `None` if none has.
    pub fn expiry_reason(&self, now: Timestamp) -> Option<String> {
        self.stack.expiry_reason(now)
    }

    /// Returns the maximum size, in bytes, of a file that may be read as a whole.
    pub fn max_file_size_bytes(&self) -> u64 {
        self.stack.max_file_size_bytes()
    }

    /// Returns the origins of the rule that determined the verdict and of the rules for each part, without duplicates.
    /// Rules that are not defined in a file are omitted.
    pub fn origins(&self, rule: &str, parts: &[CommandPart]) -> Vec<RuleOrigin> {
        self.stack.origins(rule, parts)
    }

    pub fn most_session_tokens(&self) -> Option<LowestLimit> {
        self.stack.most_session_tokens()
    }

    /// Returns the lowest limit on input tokens per request.
    pub fn most_input_tokens(&self) -> Option<LowestLimit> {
        self.stack.most_input_tokens()
    }

    pub fn most_session_cost(&self) -> Option<LowestLimit> {
        self.stack.most_session_cost()
    }

    /// Returns the sandbox requirements for commands. `homes` lists the home directories whose credentials are hidden.
    pub fn sandbox_requirements(&self, homes: &[PathBuf], now: Timestamp) -> SandboxRequirements {
        let (layers, excluded) = (self.stack.compiled_layers(), self.stack.excluded_paths());
        let source = RequirementSource { layers, context: &self.context, terms: self.terms(), excluded };
        source.requirements(homes, now)
    }

    /// Returns whether an approval may permit a command to write to this path outside the workspace. `path` must not
    /// contain symlinks.
    pub fn can_open_for_write(&self, path: &Path) -> bool {
        escalation::can_open_for_write(path, self.stack.compiled_layers(), &self.context)
            && self.outer_allows(|outer| outer.can_open_for_write(path))
    }

    /// Returns whether an approval may permit a command to read this path outside the workspace. `path` must not
    /// contain symlinks.
    pub fn can_open_for_read(&self, path: &Path) -> bool {
        escalation::can_open_for_read(path, self.stack.compiled_layers(), &self.context)
            && self.outer_allows(|outer| outer.can_open_for_read(path))
    }

    /// Returns whether a command that a rule allows may follow a symlink to `path`, which must not contain symlinks
    /// itself. The symlink may lead into the workspace, into `readable_paths`, or to a path that is readable without
    /// approval, but never to a blocked path.
    pub fn can_follow_link(&self, path: &Path) -> bool {
        if !self.outer_allows(|outer| outer.can_follow_link(path)) {
            return false;
        }
        let named = || self.terms().readable_paths.clone().unwrap_or_default();
        let inside =
            self.context.in_workspace(path) || PathPatterns::new(&named(), &self.context, false).matching_line(path).is_some();
        if inside {
            return self.can_open_for_read(path);
        }
        let target = Target { given: String::new(), real: path.to_owned(), place: Place::File { bytes: 0 } };
        self.explain(&[Action::Read { target }], Timestamp::UNIX_EPOCH).verdict == VerdictKind::Allow
    }

    /// Returns every key in every policy layer, with its origin and effect.
    pub fn entries(&self) -> Vec<EffectiveSetting> {
        entries(self.stack.compiled_layers())
    }
}

fn finding_of(decided: LayerVerdict) -> ActionFinding {
    ActionFinding { decided, risk: Risk::Low, critical: false, reads_only: true, remember: None, parts: Vec::new() }
}

fn merge(mut whole: ActionFinding, mut one: ActionFinding) -> ActionFinding {
    whole.parts.append(&mut one.parts);
    let same = whole.remember == one.remember;
    ActionFinding {
        decided: whole.decided.stricter(one.decided),
        risk: whole.risk.max(one.risk),
        critical: whole.critical || one.critical,
        reads_only: whole.reads_only && one.reads_only,
        remember: whole.remember.filter(|_| same),
        parts: whole.parts,
    }
}

#[cfg(test)]
mod tests;
