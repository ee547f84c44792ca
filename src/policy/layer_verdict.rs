//! Verdict of a single policy layer before modes and grants are applied, and how the verdicts of several layers are
//! combined.

use super::bundle::Approve;
use super::layer::{CompiledLayer, Scope};
use super::permit::Grant;
use crate::protocol::{CommandPart, Mode, Risk, VerdictKind};

/// Verdict of a policy layer on an action.
#[derive(Debug, Clone)]
pub(crate) struct LayerVerdict {
    pub verdict: VerdictKind,
    pub rule: String,
    pub reason: String,
    /// Name of the approval rule that defines the title of the approval prompt.
    pub approval_rule: Option<String>,
    /// Whether modes and grants cannot change the verdict.
    pub locked: bool,
    /// Whether a rule or a grant allowed the program by name.
    pub by_name: bool,
    /// Whether the capability requires approval only because no rule matched.
    pub is_uncovered: bool,
    /// Subject of the approval if this is an ask verdict; always `Effects` for other verdicts.
    pub approve: Approve,
    /// For an ask verdict, whether the user's rules permit the command to run in a copy of the workspace without a
    /// prompt. Always true for an allow verdict.
    pub in_a_copy: bool,
    /// Whether the action is allowed only by the mode, not by a rule or a grant.
    pub by_mode: bool,
    /// Whether a command is allowed because the approved plan names it. Such a command must run in a copy of the
    /// workspace.
    pub by_plan: bool,
}

impl LayerVerdict {
    pub(crate) fn new(verdict: VerdictKind, rule: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            verdict,
            rule: rule.into(),
            reason: reason.into(),
            approval_rule: None,
            locked: false,
            by_name: false,
            is_uncovered: false,
            approve: if verdict == VerdictKind::Ask { Approve::Command } else { Approve::Effects },
            in_a_copy: verdict == VerdictKind::Allow,
            by_mode: false,
            by_plan: false,
        }
    }

    pub(crate) fn deny(rule: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::new(VerdictKind::Deny, rule, reason)
    }

    pub(crate) fn ask(rule: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::new(VerdictKind::Ask, rule, reason)
    }

    pub(crate) fn allow(rule: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::new(VerdictKind::Allow, rule, reason)
    }

    /// Makes the command run in a copy of the workspace before it is approved, as required by a rule.
    pub(crate) fn with_copy(mut self) -> Self {
        (self.approve, self.in_a_copy) = (Approve::Effects, true);
        self
    }

    pub(crate) fn not_grantable(mut self) -> Self {
        self.locked = true;
        self
    }

    /// Returns the allow verdict of a mode for a call that would otherwise need approval. The conditions for running in
    /// a copy remain the same.
    pub(crate) fn allowed_by_mode(self, mode: Mode) -> Self {
        let Self { by_name, approve, in_a_copy, reason, .. } = self;
        let rule = format!("{} mode", mode.as_str());
        Self { by_name, approve, in_a_copy, by_mode: true, ..Self::allow(rule, reason) }
    }

    /// Marks an allow verdict on a command as based on the approved plan.
    pub(crate) fn allowed_by_plan(mut self) -> Self {
        self.by_plan = true;
        self
    }

    /// Marks the verdict as based on the program's name.
    pub(crate) fn named_by_program(mut self) -> Self {
        self.by_name = true;
        self
    }

    pub(crate) fn is_denial(&self) -> bool {
        self.verdict == VerdictKind::Deny
    }

    pub(crate) fn is_question(&self) -> bool {
        self.verdict == VerdictKind::Ask
    }

    /// Locks the verdict if it is an ask verdict of a managed layer. An allow verdict of a managed layer does not lock
    /// the ask verdicts of other layers.
    pub(crate) fn lock_if_managed(&mut self, scope: Scope) {
        self.locked |= scope.is_managed() && self.is_question();
    }

    /// Returns the stricter of two verdicts. If both are equally strict, returns the locked one, or `self` if neither
    /// is locked.
    pub(crate) fn stricter(self, other: Self) -> Self {
        let by_name = self.by_name || other.by_name;
        // A rule that requires approval before a command runs takes precedence over a rule that requires approval of
        // its effects.
        let approve = self.approve.min(other.approve);
        let in_a_copy = self.in_a_copy && other.in_a_copy;
        let by_mode = self.by_mode || other.by_mode;
        let by_plan = self.by_plan || other.by_plan;
        let stricter = if (other.verdict, other.locked) > (self.verdict, self.locked) { other } else { self };
        Self { by_name, approve, in_a_copy, by_mode, by_plan, ..stricter }
    }
}

/// Combines the verdicts of all policy layers on an action whose capability at least one layer must grant.
pub(crate) fn combine_layers(
    capability: &str,
    layers: &[CompiledLayer],
    says: impl Fn(&CompiledLayer) -> Option<LayerVerdict>,
) -> LayerVerdict {
    let of = |granting: bool| layers.iter().filter(move |layer| layer.scope.grants() == granting).filter_map(&says);
    let granted = of(true).reduce(LayerVerdict::stricter).unwrap_or_else(|| not_granted_verdict("built-in", capability));
    of(false).fold(granted, LayerVerdict::stricter)
}

/// Returns the denial of a capability that a policy layer does not list, or `None` if the layer does not deny it.
pub(crate) fn unlisted_verdict(capability: &str, layer: &CompiledLayer) -> Option<LayerVerdict> {
    layer.refuses(capability).then(|| not_granted_verdict(layer.scope.rule(1), capability))
}

fn not_granted_verdict(rule: impl Into<String>, capability: &str) -> LayerVerdict {
    LayerVerdict::deny(rule, format!("the capability `{capability}` is not granted"))
}

/// Returns the reason stated by a rule, or `otherwise` if the rule states none.
pub(crate) fn reason(given: &str, otherwise: &str) -> String {
    if given.is_empty() { otherwise } else { given }.to_owned()
}

/// Returns the next higher risk; `High` remains `High`.
pub(crate) fn next_higher(risk: Risk) -> Risk {
    match risk {
        Risk::Low => Risk::Medium,
        Risk::Medium | Risk::High => Risk::High,
    }
}

/// Result of judging one action, before modes and grants are applied.
#[derive(Debug, Clone)]
pub(crate) struct ActionFinding {
    pub decided: LayerVerdict,
    pub risk: Risk,
    pub critical: bool,
    /// Whether the action changes nothing. Plan mode allows only such actions.
    pub reads_only: bool,
    pub remember: Option<Grant>,
    pub parts: Vec<CommandPart>,
}
