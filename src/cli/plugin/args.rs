//! `aye plugin …`: clap definition and checked action.

use clap::Subcommand;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum PluginSub {
    /// Add a plugin from a folder, after showing a plan
    ///
    /// The plan lists everything that the plugin brings. aye copies the files and pins them by hash. If the plugin is already
    /// installed, the plan shows the difference. Nothing is added before you approve the plan.
    Add {
        /// Folder of the plugin
        #[arg(value_name = "DIR")]
        source: String,
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
        /// Name of the plugin, as `aye plugin list` shows it
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check the folder of a plugin for mistakes
    ///
    /// The exit code is 1 if there is an error. Nothing is added.
    Check {
        /// Folder of the plugin
        #[arg(value_name = "DIR")]
        path: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Add a plugin again from its folder, after showing the difference
    Update {
        /// Name of the plugin, as `aye plugin list` shows it
        name: String,
        /// Update the plugin without asking
        #[arg(long)]
        yes: bool,
    },
    /// Remove a plugin with all of its files
    Remove {
        /// Name of the plugin, as `aye plugin list` shows it
        name: String,
    },
    /// Use a plugin again
    Enable {
        /// Name of the plugin, as `aye plugin list` shows it
        name: String,
    },
    /// Stop using a plugin, without removing it
    Disable {
        /// Name of the plugin, as `aye plugin list` shows it
        name: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PluginAction {
    Add { source: String, yes: bool },
    List { json: bool },
    Show { name: String, json: bool },
    Check { path: PathBuf, json: bool },
    Update { name: String, yes: bool },
    Remove { name: String },
    SetEnabled { name: String, enabled: bool },
}

impl PluginSub {
    pub(crate) fn check(self) -> PluginAction {
        match self {
            Self::Add { source, yes } => PluginAction::Add { source, yes },
            Self::List { json } => PluginAction::List { json },
            Self::Show { name, json } => PluginAction::Show { name, json },
            Self::Check { path, json } => PluginAction::Check { path, json },
            Self::Update { name, yes } => PluginAction::Update { name, yes },
            Self::Remove { name } => PluginAction::Remove { name },
            Self::Enable { name } => PluginAction::SetEnabled { name, enabled: true },
            Self::Disable { name } => PluginAction::SetEnabled { name, enabled: false },
        }
    }
}

impl PluginAction {
    /// Returns whether the action changes which plugins are used.
    pub(crate) fn changes_plugins(&self) -> bool {
        match self {
            Self::Add { .. } | Self::Update { .. } | Self::Remove { .. } | Self::SetEnabled { .. } => true,
            Self::List { .. } | Self::Show { .. } | Self::Check { .. } => false,
        }
    }
}
