//! `aye plugin …`: clap definition and checked action.

use clap::{Args, Subcommand};

/// Source of a plugin, as the user specifies it.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct SourceArgs {
    /// Folder, archive (file or https URL), or repository with #BRANCH/@COMMIT
    #[arg(value_name = "SOURCE")]
    pub source: String,
    /// Plugin folder in the repository or archive
    #[arg(long, value_name = "DIR")]
    pub path: Option<String>,
    /// Let git use your credential helpers and SSH keys
    #[arg(long)]
    pub credentials: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PluginSub {
    /// Show a plan, and add a plugin from a folder, archive or repository
    ///
    /// The plan lists everything that the plugin brings. aye copies the files and pins them by hash. If the plugin is
    /// already installed, the plan shows the difference. Nothing is added until you approve the plan, and no part of
    /// the plugin runs.
    Add {
        #[command(flatten)]
        source: SourceArgs,
        /// Add the plugin without asking
        #[arg(long)]
        yes: bool,
    },
    /// List the plugins and their changes since they were added
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the contents of a plugin
    Show {
        /// Name of the plugin, as shown by `aye plugin list`
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check a plugin for mistakes
    ///
    /// The exit code is 1 if there is an error. Nothing is added.
    Check {
        #[command(flatten)]
        source: SourceArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Update a plugin from its source, after showing the difference
    Update {
        /// Name of the plugin, as shown by `aye plugin list`
        name: String,
        /// Let git use your credential helpers and SSH keys
        #[arg(long)]
        credentials: bool,
        /// Update the plugin without asking
        #[arg(long)]
        yes: bool,
    },
    /// Remove a plugin with all of its files
    Remove {
        /// Name of the plugin, as shown by `aye plugin list`
        name: String,
    },
    /// Enable a disabled plugin
    Enable {
        /// Name of the plugin, as shown by `aye plugin list`
        name: String,
    },
    /// Disable a plugin without removing it
    Disable {
        /// Name of the plugin, as shown by `aye plugin list`
        name: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PluginAction {
    Add { source: SourceArgs, yes: bool },
    List { json: bool },
    Show { name: String, json: bool },
    Check { source: SourceArgs, json: bool },
    Update { name: String, credentials: bool, yes: bool },
    Remove { name: String },
    SetEnabled { name: String, enabled: bool },
}

impl PluginSub {
    pub(crate) fn check(self) -> PluginAction {
        match self {
            Self::Add { source, yes } => PluginAction::Add { source, yes },
            Self::List { json } => PluginAction::List { json },
            Self::Show { name, json } => PluginAction::Show { name, json },
            Self::Check { source, json } => PluginAction::Check { source, json },
            Self::Update { name, credentials, yes } => PluginAction::Update { name, credentials, yes },
            Self::Remove { name } => PluginAction::Remove { name },
            Self::Enable { name } => PluginAction::SetEnabled { name, enabled: true },
            Self::Disable { name } => PluginAction::SetEnabled { name, enabled: false },
        }
    }
}

impl PluginAction {
    /// Returns whether the action changes which plugins are in use.
    pub(crate) fn changes_plugins(&self) -> bool {
        match self {
            Self::Add { .. } | Self::Update { .. } | Self::Remove { .. } | Self::SetEnabled { .. } => true,
            Self::List { .. } | Self::Show { .. } | Self::Check { .. } => false,
        }
    }
}
