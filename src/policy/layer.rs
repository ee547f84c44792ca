//! Policy layers: how they are named in verdicts, what they may do, and their compiled patterns.

use super::bundle::{Approve, Bundle, FileCapability, FileRule, Rule, RuleDecision, ToolRule};
use super::excluded::{EXCLUDED_LIST, ExcludedPaths};
use super::paths::{Context, PathPatterns};
use jiff::Timestamp;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Origin of a bundle, ordered from strongest to weakest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Managed policy, which no other layer can loosen.
    Managed,
    /// Part of the built-in policy that a managed policy extends. Like the managed policy, it cannot be loosened by
    /// other layers.
    ManagedBase,
    /// Policy from a URL. It can only tighten the policy, and the user cannot override its verdicts.
    Service,
    /// Policy sent by the session service for this session. It has the same rights as `Service`.
    ServiceSession,
    User,
    /// Policy from `--policy FILE`, which replaces the user's policy and saved rules.
    File,
    BuiltIn,
    /// Rules that the user saved for this project. They are treated like the rules in the user's policy; any other
    /// entries in the file can only tighten the policy.
    Mine,
    /// Rules that the user allowed until aye exits. They are treated like the rules in the user's policy.
    Session,
    /// Policy of the project, which can only tighten the policy.
    Project,
}

/// A bundle and where it comes from.
#[derive(Debug, Clone)]
pub struct Layer {
    pub scope: Scope,
    pub bundle: Bundle,
    /// Bundle file, shown to users. `None` for the built-in policy.
    pub file: Option<PathBuf>,
}

impl Layer {
    pub fn new(scope: Scope, bundle: Bundle) -> Self {
        Self { scope, bundle, file: None }
    }

    pub fn from_file(scope: Scope, bundle: Bundle, file: &Path) -> Self {
        Self { scope, bundle, file: Some(file.to_owned()) }
    }

    /// Returns the part of the built-in policy that applies because this layer extends it. Returns `None` if the layer
    /// extends nothing.
    pub fn base(&self) -> Option<Self> {
        let scope = if self.scope == Scope::Managed { Scope::ManagedBase } else { Scope::BuiltIn };
        let base = self.bundle.inherited_sections().filter(|_| self.scope.grants())?;
        Some(Self::new(scope, base))
    }

    /// Returns the session to which the bundle is restricted, if any. A project's bundle cannot set this.
    pub fn session_id(&self) -> Option<&str> {
        self.bundle.session_id.as_deref().filter(|_| self.scope.grants())
    }
}

impl Scope {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BuiltIn | Self::ManagedBase => "built-in",
            Self::User => "user",
            Self::File => "policy",
            Self::Managed => "managed",
            Self::Mine => "mine-here",
            Self::Session => "session",
            Self::Project => "project",
            Self::Service => "service",
            Self::ServiceSession => "service-session",
        }
    }

    /// Returns the name of a rule as shown in verdicts, such as `user:31`.
    pub fn rule(self, line: usize) -> String {
        RuleId::new(self, line).to_string()
    }

    /// Returns whether the layer grants capabilities. A granting layer denies every capability that it does not list.
    pub fn grants(self) -> bool {
        match self {
            Self::BuiltIn | Self::User | Self::File | Self::Managed | Self::ManagedBase => true,
            Self::Mine | Self::Session | Self::Project | Self::Service | Self::ServiceSession => false,
        }
    }

    /// Returns whether the layer can only tighten the policy. None of the entries in such a layer allows anything.
    pub(crate) fn only_tightens(self) -> bool {
        matches!(self, Self::Project | Self::Service | Self::ServiceSession)
    }

    /// Returns whether the layer was set by an administrator, in which case the user cannot override its verdicts.
    pub fn is_managed(self) -> bool {
        matches!(self, Self::Managed | Self::ManagedBase | Self::Service | Self::ServiceSession)
    }

    /// Returns whether the layer's list of readable paths also restricts access to the user's skills.
    pub(crate) fn limits_skills(self) -> bool {
        self.is_managed() || self.only_tightens()
    }

    /// Returns whether this is the user's own layer, to which the rules saved for a project or session are added.
    fn is_users(self) -> bool {
        matches!(self, Self::User | Self::File | Self::BuiltIn)
    }
}

/// Rule of a policy layer, as named in verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleId {
    pub scope: Scope,
    /// Line in the layer's file; `None` if the names of the scope's rules contain no line.
    pub line: Option<usize>,
}

impl RuleId {
    /// All scopes. `ManagedBase` follows `BuiltIn`, which has the same name.
    const SCOPES: [Scope; 10] = [
        Scope::Managed,
        Scope::Service,
        Scope::ServiceSession,
        Scope::User,
        Scope::File,
        Scope::BuiltIn,
        Scope::ManagedBase,
        Scope::Mine,
        Scope::Session,
        Scope::Project,
    ];

    pub fn new(scope: Scope, line: usize) -> Self {
        let line = match scope {
            Scope::BuiltIn | Scope::ManagedBase | Scope::Session => None,
            Scope::User
            | Scope::File
            | Scope::Managed
            | Scope::Service
            | Scope::ServiceSession
            | Scope::Mine
            | Scope::Project => Some(line),
        };
        Self { scope, line }
    }

    /// Returns the rule with exactly this name. Returns `None` if no layer has such a rule, as for a mode or a hook.
    pub fn from_name(name: &str) -> Option<Self> {
        let line = name.split_once(':').map_or(Some(0), |(_, line)| line.parse().ok())?;
        Self::SCOPES.iter().map(|scope| Self::new(*scope, line)).find(|rule| rule.to_string() == name)
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(out, "{}:{line}", self.scope.as_str()),
            None => out.write_str(self.scope.as_str()),
        }
    }
}

/// Returns whether the rule with this name is in the file of the managed policy.
pub(crate) fn is_managed_rule(name: &str) -> bool {
    RuleId::from_name(name).is_some_and(|rule| rule.scope == Scope::Managed)
}

/// A rule and its scope. Rules that the user saved for a project are part of the user's own layer but have a scope of
/// their own.
#[derive(Debug, Clone)]
pub(crate) struct ScopedRule<R> {
    pub scope: Scope,
    pub rule: R,
}

/// Returns whether a rule is still in effect.
pub(crate) fn is_in_effect(expires_at: Option<Timestamp>, now: Timestamp) -> bool {
    expires_at.is_none_or(|end| now < end)
}

/// A path rule with compiled patterns.
#[derive(Debug, Clone)]
pub(crate) struct PathRule {
    pub rule: FileRule,
    pub places: PathPatterns,
}

impl PathRule {
    pub(crate) fn new(rule: FileRule, context: &Context) -> Self {
        let places = PathPatterns::new(&rule.paths, context, rule.decision != RuleDecision::Allow);
        Self { rule, places }
    }
}

/// A file capability with compiled patterns.
#[derive(Debug, Clone)]
pub(crate) struct FileRules {
    pub files: FileCapability,
    pub allowed: Option<PathPatterns>,
    pub blocked: PathPatterns,
    pub unprotected: PathPatterns,
    pub rules: Vec<ScopedRule<PathRule>>,
    /// Files that the workspace excludes, identical in every layer.
    pub excluded: Arc<[ExcludedPaths]>,
}

impl FileRules {
    pub(crate) fn new(files: FileCapability, scope: Scope, context: &Context) -> Self {
        Self {
            allowed: files.allowed.as_ref().map(|patterns| PathPatterns::new(patterns, context, false)),
            blocked: PathPatterns::new(&files.blocked, context, true),
            unprotected: PathPatterns::new(&files.unprotected, context, false),
            rules: with_scope(scope, files.rules.iter().map(|rule| PathRule::new(rule.clone(), context))),
            excluded: Arc::default(),
            files,
        }
    }

    /// Returns what denies a path, even if a rule allows it.
    pub(crate) fn denying_rule(&self, scope: Scope, path: &Path, now: Timestamp) -> Option<PathDenial<'_>> {
        let excluded = || {
            let is_excluded = self.excluded.iter().any(|list| list.excludes(path));
            is_excluded.then(|| PathDenial { rule: EXCLUDED_LIST.to_owned(), denied: None, is_excluded })
        };
        let blocked = || {
            self.blocked.matching_line(path).map(|line| PathDenial { rule: scope.rule(line), denied: None, is_excluded: false })
        };
        let denies = |owned: &&ScopedRule<PathRule>| {
            let rule = &owned.rule.rule;
            rule.decision == RuleDecision::Deny
                && is_in_effect(rule.expires_at, now)
                && owned.rule.places.matching_line(path).is_some()
        };
        let denied = || {
            let owned = self.rules.iter().find(denies)?;
            let rule = owned.scope.rule(owned.rule.rule.line);
            Some(PathDenial { rule, denied: Some(&owned.rule.rule), is_excluded: false })
        };
        blocked().or_else(denied).or_else(excluded)
    }
}

/// Source of a path's denial: an entry in `blocked_paths`, a rule, or a pattern in `.ayeignore`.
pub(crate) struct PathDenial<'a> {
    pub rule: String,
    pub denied: Option<&'a FileRule>,
    /// Whether the workspace excludes the path.
    pub is_excluded: bool,
}

fn with_scope<R>(scope: Scope, rules: impl IntoIterator<Item = R>) -> Vec<ScopedRule<R>> {
    rules.into_iter().map(|rule| ScopedRule { scope, rule }).collect()
}

/// A policy layer compiled for one context.
#[derive(Debug, Clone)]
pub(crate) struct CompiledLayer {
    pub scope: Scope,
    pub bundle: Bundle,
    pub file: Option<PathBuf>,
    pub read: Option<FileRules>,
    pub write: Option<FileRules>,
    pub delete: Option<FileRules>,
    pub commands: Vec<ScopedRule<Rule>>,
    pub tools: Vec<ScopedRule<ToolRule>>,
    /// Rules for custom tools.
    pub custom: Vec<ScopedRule<ToolRule>>,
    /// Capabilities listed by the layer that this layer extends, or by the layer that extends this one. This layer does
    /// not deny them even though it does not list them itself.
    listed_elsewhere: Vec<String>,
}

impl CompiledLayer {
    fn new(layer: Layer, context: &Context) -> Self {
        let Layer { scope, mut bundle, file } = layer;
        if !scope.grants() {
            drop_granting_entries(&mut bundle, scope);
        }
        let compiled = |files: &Option<FileCapability>| files.clone().map(|files| FileRules::new(files, scope, context));
        Self {
            scope,
            file,
            read: compiled(&bundle.capabilities.read),
            write: compiled(&bundle.capabilities.write),
            delete: compiled(&bundle.capabilities.delete),
            commands: with_scope(scope, bundle.capabilities.shell.iter().flat_map(|shell| shell.rules.clone())),
            tools: with_scope(
                scope,
                bundle.capabilities.mcp.iter().chain(&bundle.capabilities.backend).flat_map(|tools| tools.rules.clone()),
            ),
            custom: with_scope(scope, bundle.capabilities.custom.clone()),
            bundle,
            listed_elsewhere: Vec::new(),
        }
    }

    /// Compiles a layer and the layer that it extends.
    fn compile(layer: Layer, context: &Context) -> Vec<Self> {
        let base = layer.base();
        let mut layer = Self::new(layer, context);
        let Some(base) = base else { return vec![layer] };
        let mut base = Self::new(base, context);
        layer.listed_elsewhere.clone_from(&base.bundle.capabilities.granted);
        base.listed_elsewhere.clone_from(&layer.bundle.capabilities.granted);
        vec![layer, base]
    }

    /// Compiles all layers, ordered from strongest to weakest. Rules that the user saved for this project are added to
    /// the user's own layer.
    pub(crate) fn compile_all(layers: Vec<Layer>, context: &Context) -> Vec<Self> {
        let mut all: Vec<Self> = layers.into_iter().flat_map(|layer| Self::compile(layer, context)).collect();
        all.sort_by_key(|layer| layer.scope);
        let mut mine: Vec<Self> = all.extract_if(.., |layer| matches!(layer.scope, Scope::Mine | Scope::Session)).collect();
        let Some(own) = all.iter().find(|layer| layer.scope.is_users()) else { return all };
        // A file passed for this run replaces the rules that were saved earlier.
        mine.retain(|layer| own.scope != Scope::File || layer.scope == Scope::Session);
        for own in all.iter_mut().filter(|layer| layer.scope.is_users()) {
            for remembered in &mut mine {
                own.join(remembered);
            }
        }
        let at = all.iter().position(|layer| layer.scope > Scope::Mine).unwrap_or(all.len());
        all.splice(at..at, mine);
        all
    }

    /// Adds the saved rules for the capabilities that this layer lists.
    fn join(&mut self, mine: &mut Self) {
        if self.bundle.capabilities.shell.is_some() {
            self.commands.append(&mut mine.commands);
        }
        if self.bundle.capabilities.mcp.is_some() || self.bundle.capabilities.backend.is_some() {
            self.tools.append(&mut mine.tools);
        }
        // Rules about custom tools apply whichever capabilities this layer lists.
        self.custom.append(&mut mine.custom);
        // Paths that the user saved for this project are readable in addition to those of the user's own layer.
        if let (Some(shell), Some(added)) = (&mut self.bundle.capabilities.shell, &mut mine.bundle.capabilities.shell) {
            let added = added.terms.readable_paths.take();
            if let Some(added) = added {
                shell.terms.readable_paths.get_or_insert_default().extend(added);
            }
        }
        for (files, added) in
            [(&mut self.read, &mut mine.read), (&mut self.write, &mut mine.write), (&mut self.delete, &mut mine.delete)]
        {
            if let (Some(files), Some(added)) = (files, added) {
                files.rules.append(&mut added.rules);
            }
        }
    }

    /// Returns whether the layer denies a capability because it does not list it.
    pub(crate) fn refuses(&self, capability: &str) -> bool {
        let grants = self.scope.grants() && !(self.scope == Scope::Managed && self.bundle.capabilities.granted.is_empty())
            || self.bundle.denies_unlisted;
        grants && !self.lists(capability) && !self.listed_elsewhere.iter().any(|listed| listed == capability)
    }

    pub(crate) fn lists(&self, capability: &str) -> bool {
        self.bundle.capabilities.granted.iter().any(|granted| granted == capability)
    }
}

/// Removes the entries that only a granting layer may set.
fn drop_granting_entries(bundle: &mut Bundle, scope: Scope) {
    bundle.session_id = None;
    // Titles of approvals come only from trusted layers.
    bundle.approval_rules.clear();
    for files in
        [&mut bundle.capabilities.read, &mut bundle.capabilities.write, &mut bundle.capabilities.delete].into_iter().flatten()
    {
        files.unprotected.clear();
        files.approval_rule = None;
    }
    for tools in [&mut bundle.capabilities.mcp, &mut bundle.capabilities.backend].into_iter().flatten() {
        tools.approval_rule = None;
    }
    if let Some(http) = &mut bundle.capabilities.http {
        http.approval_rule = None;
        http.private.clear();
    }
    if let Some(search) = &mut bundle.capabilities.search {
        search.approval_rule = None;
    }
    if let Some(shell) = &mut bundle.capabilities.shell {
        shell.approval_rule = None;
        shell.terms.writable_paths = None;
        // Only a granting layer may let commands run before their approval.
        shell.terms.approve = shell.terms.approve.filter(|approve| *approve == Approve::Command);
        if scope != Scope::Mine {
            shell.terms.readable_paths = None;
        }
        for rule in &mut shell.rules {
            rule.any_args = rule.exact;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_names_identify_the_scope_and_the_line_and_nothing_else_does() {
        for scope in RuleId::SCOPES.into_iter().filter(|scope| *scope != Scope::ManagedBase) {
            let rule = RuleId::new(scope, 31);
            assert_eq!(RuleId::from_name(&scope.rule(31)), Some(rule), "{rule}");
        }
        assert_eq!(RuleId::from_name("mine-here:14"), Some(RuleId { scope: Scope::Mine, line: Some(14) }));
        for name in [
            "",
            "mine-here",
            "mine-here:",
            "mine-here:+14",
            "mine-here:014",
            "built-in:14",
            "session:1",
            "hook a:1",
            "managed-x:1",
        ] {
            assert_eq!(RuleId::from_name(name), None, "{name}");
        }
    }
}
