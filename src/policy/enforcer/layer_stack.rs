//! Stack of policy layers in effect: the layers passed by the caller, their compiled form, and the resulting terms.

use super::layer_rules::describe_rules;
use crate::policy::bundle::{Approve, Rule, ServiceRisk, Terms};
use crate::policy::excluded::ExcludedPaths;
use crate::policy::layer::{CompiledLayer, Layer, RuleId, Scope};
use crate::policy::paths::Context;
use crate::policy::program_kinds::runs_repository_programs;
use crate::protocol::{GrantScope, PolicyLayer, Risk};
use jiff::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// Default maximum size in bytes of a file that is read as a whole.
const FILE_BYTES: u64 = 10 << 20;

/// Policy layers of an enforcer.
#[derive(Debug, Clone)]
pub(crate) struct EnforcerLayers {
    /// Layers as passed by the caller, from which the other fields are derived.
    source: Vec<Layer>,
    layers: Vec<CompiledLayer>,
    terms: Terms,
    /// Files that the workspace excludes.
    excluded: Arc<[ExcludedPaths]>,
}

impl EnforcerLayers {
    pub(crate) fn new(source: Vec<Layer>, context: &Context) -> Self {
        let mut stack = Self { source, layers: Vec::new(), terms: Terms::default(), excluded: Arc::default() };
        stack.recompile(context);
        stack
    }

    /// Excludes files from all tools by making every layer deny access to them.
    pub(crate) fn exclude(&mut self, excluded: Vec<ExcludedPaths>, context: &Context) {
        self.excluded = excluded.into();
        self.recompile(context);
    }

    /// Returns the files that the workspace excludes.
    pub(crate) fn excluded_paths(&self) -> &Arc<[ExcludedPaths]> {
        &self.excluded
    }

    /// Returns the layers as passed by the caller.
    pub(crate) fn source(&self) -> &[Layer] {
        &self.source
    }

    /// Returns the compiled layers, strongest first.
    pub(crate) fn compiled_layers(&self) -> &[CompiledLayer] {
        &self.layers
    }

    /// Returns the sandbox terms for commands, using the strictest value from all layers.
    pub(crate) fn terms(&self) -> &Terms {
        &self.terms
    }

    pub(crate) fn push(&mut self, layer: Layer, context: &Context) {
        self.source.push(layer);
        self.recompile(context);
    }

    /// Replaces the layers with those of `new`. Session grants are preserved.
    pub(crate) fn replace(&mut self, new: Self, context: &Context) {
        let session = std::mem::take(&mut self.source).into_iter().filter(|layer| layer.scope == Scope::Session);
        self.source = new.source;
        self.source.extend(session);
        self.recompile(context);
    }

    /// Replaces one of the user's policy layers in memory, without writing a file.
    pub(crate) fn replace_user_layer(&mut self, layer: Option<Layer>, scope: GrantScope, context: &Context) {
        match scope {
            GrantScope::Session => return,
            GrantScope::Project => {
                self.source.retain(|own| own.scope != Scope::Mine);
                self.source.extend(layer);
            }
            GrantScope::Everywhere => {
                let own = self.source.iter().position(|layer| matches!(layer.scope, Scope::BuiltIn | Scope::User));
                if let (Some(layer), Some(at)) = (layer, own) {
                    self.source[at] = layer;
                }
            }
        }
        self.recompile(context);
    }

    /// Removes the most recent session grant. Returns `false` if there is none.
    pub(crate) fn remove_last_grant(&mut self, context: &Context) -> bool {
        let Some(at) = self.source.iter().rposition(|layer| layer.scope == Scope::Session) else { return false };
        self.source.remove(at);
        self.recompile(context);
        true
    }

    /// Recompiles the layers after one of them has changed.
    fn recompile(&mut self, context: &Context) {
        self.layers = CompiledLayer::compile_all(self.source.clone(), context);
        for layer in &mut self.layers {
            for rules in [&mut layer.read, &mut layer.write, &mut layer.delete].into_iter().flatten() {
                rules.excluded = Arc::clone(&self.excluded);
            }
        }
        self.terms = terms(&self.layers);
    }

    /// Returns a summary of each layer in effect, strongest first.
    pub(crate) fn summaries(&self) -> Vec<PolicyLayer> {
        let told = |layer: &CompiledLayer| PolicyLayer {
            scope: layer.scope.as_str().to_owned(),
            bundle_version: layer.bundle.version.clone(),
            expires_at: layer.bundle.expires_at,
            max_input_tokens: layer.bundle.llm.max_input_tokens,
            file: layer.file.as_ref().map(|file| file.display().to_string()),
            rules: describe_rules(layer),
        };
        self.layers.iter().map(told).collect()
    }

    /// Returns the timeout for pending approvals: the shortest one set by any layer.
    pub(crate) fn approval_timeout(&self) -> Option<Duration> {
        let seconds = self.layers.iter().filter_map(|layer| layer.bundle.approval_timeout_seconds).min()?;
        Some(Duration::from_secs(seconds.max(1)))
    }

    /// Returns the highest risk that the approval service may approve, which is the lowest value set by any layer. It
    /// defaults to medium for the layers of the user and the organisation. Returns `None` if the service may not
    /// approve anything.
    pub(crate) fn service_risk(&self) -> Option<Risk> {
        let risk = |only_tightens: bool| {
            let layers = self.layers.iter().filter(move |layer| (layer.scope >= Scope::Mine) == only_tightens);
            layers.filter_map(|layer| layer.bundle.service_risk).min()
        };
        let set = risk(false).unwrap_or(ServiceRisk::UpTo(Risk::Medium));
        match risk(true).map_or(set, |tighter| tighter.min(set)) {
            ServiceRisk::None => None,
            ServiceRisk::UpTo(risk) => Some(risk),
        }
    }

    /// Returns the reason to deny every action because a bundle has expired, or `None` if none has.
    pub(crate) fn expiry_reason(&self, now: Timestamp) -> Option<String> {
        self.layers.iter().find_map(|layer| {
            let end = layer.bundle.expires_at.filter(|end| *end <= now)?;
            let name = layer.bundle.version.as_deref().unwrap_or(layer.scope.as_str());
            let end = end.strftime("%Y-%m-%d %H:%M UTC");
            let file = layer.file.as_ref().map(|file| format!(" (aye watches {})", file.display())).unwrap_or_default();
            Some(format!("policy `{name}` expired on {end}; nothing runs until you renew it{file}"))
        })
    }

    /// Appends the bundle name to the description of a managed rule, because administrators identify the rule by it.
    pub(crate) fn with_bundle_names(&self, why: &str) -> String {
        let managed = self.source.iter().find(|layer| layer.scope == Scope::Managed);
        match managed.and_then(|layer| layer.bundle.version.as_deref()) {
            Some(name) => why.replacen("locked by managed:", &format!("locked by managed bundle \"{name}\", managed:"), 1),
            None => why.to_owned(),
        }
    }

    /// Returns whether a rule is the user's own decision for exactly these words, in which case it also applies without
    /// a sandbox. Rules for programs that a repository can configure do not qualify.
    pub(crate) fn is_user_decision(&self, rule: &str) -> bool {
        let exact = |line: usize| {
            let mut mine = self.layers.iter().flat_map(|layer| &layer.commands).filter(|owned| owned.scope == Scope::Mine);
            let holds = |rule: &Rule| rule.exact && !rule.programs().any(runs_repository_programs);
            mine.any(|owned| owned.rule.line == line && holds(&owned.rule))
        };
        RuleId::from_name(rule).is_some_and(|rule| match rule.scope {
            Scope::Session => true,
            Scope::Mine => rule.line.is_some_and(exact),
            Scope::Managed
            | Scope::ManagedBase
            | Scope::Service
            | Scope::ServiceSession
            | Scope::User
            | Scope::File
            | Scope::BuiltIn
            | Scope::Project => false,
        })
    }

    /// Returns whether a layer other than the user's own requires commands to be approved before they run.
    pub(crate) fn requires_command(&self) -> bool {
        let requires = |layer: &CompiledLayer| {
            let approve = layer.bundle.capabilities.shell.as_ref().map(|shell| shell.terms.approve);
            match layer.scope {
                Scope::Managed | Scope::ManagedBase => approve.is_some_and(|approve| approve != Some(Approve::Effects)),
                Scope::Project | Scope::Service | Scope::ServiceSession => approve == Some(Some(Approve::Command)),
                Scope::BuiltIn | Scope::User | Scope::File | Scope::Mine | Scope::Session => false,
            }
        };
        self.layers.iter().any(requires)
    }

    /// Returns the maximum size, in bytes, of a file that may be read as a whole.
    pub(crate) fn max_file_size_bytes(&self) -> u64 {
        let of = |granting: bool| {
            let layers = self.layers.iter().filter(move |layer| layer.scope.grants() == granting);
            layers.filter_map(|layer| layer.bundle.capabilities.read.as_ref()?.max_file_size_bytes).min()
        };
        of(true).unwrap_or(FILE_BYTES).min(of(false).unwrap_or(u64::MAX))
    }
}

/// Combines the terms of the granting layers, the defaults, and the terms of the layers that only tighten, in this
/// order.
fn terms(layers: &[CompiledLayer]) -> Terms {
    let of = |granting: bool| {
        let said = layers.iter().filter(move |layer| layer.scope.grants() == granting);
        said.filter_map(|layer| Some(&layer.bundle.capabilities.shell.as_ref()?.terms))
    };
    let mut terms = of(false).fold(of(true).fold(Terms::default(), Terms::strictest).with_defaults(), Terms::strictest);
    // A managed layer that grants commands without setting `approve` requires approval of the command.
    let is_silent = |layer: &CompiledLayer| {
        layer.scope.is_managed()
            && layer.scope.grants()
            && layer.bundle.capabilities.shell.as_ref().is_some_and(|shell| shell.terms.approve.is_none())
    };
    if layers.iter().any(is_silent) {
        terms.approve = Some(Approve::Command);
    }
    terms
}
