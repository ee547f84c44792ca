//! Sandbox terms of commands (sandbox, network, limits and environment), and how they are combined across policy
//! layers.

use super::approve::{APPROVES, Approve, BUILD_OUTPUTS, BuildOutputMode, UNSANDBOXED, Unsandboxed};
use super::path_patterns::patterns;
use super::reader::{BundleError, BundleTable};
use crate::policy::paths::Pattern;

/// Value of `sandbox`, ordered from strictest to laxest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum SandboxSetting {
    ReadOnly,
    #[default]
    WorkspaceWrite,
    Off,
}

/// Network access inside the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Network {
    #[default]
    Deny,
    Allow,
}

/// Value of `preview`, which determines whether a command first runs in a copy-on-write view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Preview {
    Always,
    #[default]
    Offer,
    Never,
}

/// Location of the package managers' caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Cache {
    #[default]
    Private,
    Inherit,
}

/// Environment variables passed to a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum EnvironmentTerms {
    Inherit,
    #[default]
    Core,
    Only(Vec<String>),
    /// The listed variables, if `Inherit` would pass them.
    InheritOf(Vec<String>),
    /// The listed variables, if `Core` would pass them.
    CoreOf(Vec<String>),
}

/// Resource limits for a single command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CommandLimits {
    pub processes: Option<u64>,
    pub memory_mb: Option<u64>,
    pub file_mb: Option<u64>,
    pub cpu_seconds: Option<u64>,
    /// Maximum total size, in megabytes, of the data that a command writes to its copy of the workspace.
    pub layer_mb: Option<u64>,
}

/// Terms set by one or more policy layers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Terms {
    pub sandbox: Option<SandboxSetting>,
    pub network: Option<Network>,
    pub preview: Option<Preview>,
    pub approve: Option<Approve>,
    pub unsandboxed: Option<Unsandboxed>,
    pub build_output: Option<BuildOutputMode>,
    pub cache: Option<Cache>,
    pub environment: Option<EnvironmentTerms>,
    pub limits: CommandLimits,
    pub max_output_bytes: Option<u64>,
    /// Additional paths that a sandboxed command may write to.
    pub writable_paths: Option<Vec<Pattern>>,
    /// Additional paths that a sandboxed command may read.
    pub readable_paths: Option<Vec<Pattern>>,
}

/// Limits that apply if no policy layer sets any.
const LIMITS: CommandLimits = CommandLimits {
    processes: Some(512),
    memory_mb: Some(8192),
    file_mb: Some(4096),
    cpu_seconds: Some(3600),
    layer_mb: Some(2048),
};
const OUTPUT_BYTES: u64 = 102_400;

impl Terms {
    pub const KEYS: [&str; 12] = [
        "sandbox",
        "network",
        "preview",
        "approve",
        "unsandboxed",
        "build_output",
        "writable_paths",
        "readable_paths",
        "cache",
        "limits",
        "max_output_bytes",
        "environment",
    ];

    pub fn read(section: &BundleTable<'_>) -> Result<Self, BundleError> {
        let sandboxes = [
            ("read-only", SandboxSetting::ReadOnly),
            ("workspace-write", SandboxSetting::WorkspaceWrite),
            ("off", SandboxSetting::Off),
        ];
        let previews = [("offer", Preview::Offer), ("always", Preview::Always), ("never", Preview::Never)];
        Ok(Self {
            sandbox: section.choice("sandbox", &sandboxes)?,
            network: section.choice("network", &[("deny", Network::Deny), ("allow", Network::Allow)])?,
            preview: section.choice("preview", &previews)?,
            approve: section.choice("approve", APPROVES)?,
            unsandboxed: section.choice("unsandboxed", UNSANDBOXED)?,
            build_output: section.choice("build_output", BUILD_OUTPUTS)?,
            cache: section.choice("cache", &[("private", Cache::Private), ("inherit", Cache::Inherit)])?,
            environment: EnvironmentTerms::read(section)?,
            limits: section.section("limits")?.map_or(Ok(CommandLimits::default()), |limits| CommandLimits::read(&limits))?,
            max_output_bytes: section.number("max_output_bytes")?,
            writable_paths: patterns(section, "writable_paths")?,
            readable_paths: patterns(section, "readable_paths")?,
        })
    }

    /// Combines two sets of terms, keeping the stricter value of each.
    #[must_use]
    pub fn strictest(self, other: &Self) -> Self {
        let environment = match (self.environment, &other.environment) {
            (Some(one), Some(other)) => Some(one.intersection(other)),
            (one, other) => one.or_else(|| other.clone()),
        };
        Self {
            sandbox: min_option(self.sandbox, other.sandbox),
            network: min_option(self.network, other.network),
            preview: min_option(self.preview, other.preview),
            approve: min_option(self.approve, other.approve),
            unsandboxed: min_option(self.unsandboxed, other.unsandboxed),
            build_output: min_option(self.build_output, other.build_output),
            cache: min_option(self.cache, other.cache),
            environment,
            limits: self.limits.and(other.limits),
            max_output_bytes: min_option(self.max_output_bytes, other.max_output_bytes),
            writable_paths: intersect(self.writable_paths, other.writable_paths.as_ref()),
            readable_paths: intersect(self.readable_paths, other.readable_paths.as_ref()),
        }
    }

    /// Fills in the default for each missing term, so combining further terms can only make them stricter.
    #[must_use]
    pub fn with_defaults(self) -> Self {
        Self {
            sandbox: Some(self.sandbox.unwrap_or_default()),
            network: Some(self.network.unwrap_or_default()),
            preview: Some(self.preview.unwrap_or_default()),
            // If no layer sets `approve`, `config.toml` decides.
            approve: self.approve,
            unsandboxed: Some(self.unsandboxed.unwrap_or_default()),
            build_output: Some(self.build_output.unwrap_or_default()),
            cache: Some(self.cache.unwrap_or_default()),
            environment: Some(self.environment.unwrap_or_default()),
            limits: self.limits.or(LIMITS),
            max_output_bytes: self.max_output_bytes.or(Some(OUTPUT_BYTES)),
            writable_paths: Some(self.writable_paths.unwrap_or_default()),
            readable_paths: Some(self.readable_paths.unwrap_or_default()),
        }
    }
}

/// Returns the patterns contained in both lists. A missing list imposes no restriction.
fn intersect(one: Option<Vec<Pattern>>, other: Option<&Vec<Pattern>>) -> Option<Vec<Pattern>> {
    match (one, other) {
        (Some(one), Some(other)) => {
            let in_other = |pattern: &Pattern| other.iter().any(|other| other.text == pattern.text);
            Some(one.into_iter().filter(in_other).collect())
        }
        (one, other) => one.or_else(|| other.cloned()),
    }
}

fn min_option<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    one.into_iter().chain(other).min()
}

impl CommandLimits {
    fn read(section: &BundleTable<'_>) -> Result<Self, BundleError> {
        section.only(&["processes", "memory_mb", "file_mb", "cpu_seconds", "layer_mb"])?;
        Ok(Self {
            processes: section.number("processes")?,
            memory_mb: section.number("memory_mb")?,
            file_mb: section.number("file_mb")?,
            cpu_seconds: section.number("cpu_seconds")?,
            layer_mb: section.number("layer_mb")?,
        })
    }

    fn combine_by(self, other: Self, choose: impl Fn(Option<u64>, Option<u64>) -> Option<u64>) -> Self {
        Self {
            processes: choose(self.processes, other.processes),
            memory_mb: choose(self.memory_mb, other.memory_mb),
            file_mb: choose(self.file_mb, other.file_mb),
            cpu_seconds: choose(self.cpu_seconds, other.cpu_seconds),
            layer_mb: choose(self.layer_mb, other.layer_mb),
        }
    }

    fn and(self, other: Self) -> Self {
        self.combine_by(other, min_option)
    }

    fn or(self, other: Self) -> Self {
        self.combine_by(other, Option::or)
    }
}

/// Set of aye's own environment variables that a command inherits, ordered from smallest to largest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EnvironmentScope {
    Core,
    Inherit,
    All,
}

impl EnvironmentTerms {
    fn read(section: &BundleTable<'_>) -> Result<Option<Self>, BundleError> {
        if section.is_text("environment") {
            let choices = [("inherit", Self::Inherit), ("core", Self::Core)];
            let named: Vec<(&str, &Self)> = choices.iter().map(|(name, value)| (*name, value)).collect();
            return Ok(section.choice("environment", &named)?.cloned());
        }
        let names = section.texts("environment")?;
        Ok(names.map(|names| Self::Only(names.into_iter().map(|name| name.text).collect())))
    }

    /// Combines two values, passing only the variables that both would pass.
    #[must_use]
    pub fn intersection(self, other: &Self) -> Self {
        let ((drawn, names), (other_drawn, others)) = (self.passed_variables(), other.passed_variables());
        let names = match (names, others) {
            (Some(names), Some(others)) => Some(names.iter().filter(|name| others.contains(name)).cloned().collect()),
            (one, other) => one.or(other).cloned(),
        };
        match (drawn.min(other_drawn), names) {
            (EnvironmentScope::Core, None) => Self::Core,
            (EnvironmentScope::Core, Some(names)) => Self::CoreOf(names),
            (EnvironmentScope::Inherit, Some(names)) => Self::InheritOf(names),
            (EnvironmentScope::All, Some(names)) => Self::Only(names),
            (EnvironmentScope::Inherit | EnvironmentScope::All, None) => Self::Inherit,
        }
    }

    fn passed_variables(&self) -> (EnvironmentScope, Option<&Vec<String>>) {
        match self {
            Self::Inherit => (EnvironmentScope::Inherit, None),
            Self::Core => (EnvironmentScope::Core, None),
            Self::Only(names) => (EnvironmentScope::All, Some(names)),
            Self::InheritOf(names) => (EnvironmentScope::Inherit, Some(names)),
            Self::CoreOf(names) => (EnvironmentScope::Core, Some(names)),
        }
    }
}
