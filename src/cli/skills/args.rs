//! `aye skills …`: clap definition and checked action.

use clap::Subcommand;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum SkillsSub {
    /// List skills, including unused ones
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a skill: its location, tools, files and text
    Show {
        /// Name of the skill, as shown by `aye skills list`
        name: String,
    },
    /// Check skills for errors
    ///
    /// Without PATH, checks the skills of this project and your own. The exit code is 1 if there is an error.
    Check {
        /// Skill directory, its SKILL.md, or a folder of skills
        path: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SkillsAction {
    List { json: bool },
    Show { name: String },
    Check { path: Option<PathBuf>, json: bool },
}

impl SkillsSub {
    pub(crate) fn check(self) -> SkillsAction {
        match self {
            Self::List { json } => SkillsAction::List { json },
            Self::Show { name } => SkillsAction::Show { name },
            Self::Check { path, json } => SkillsAction::Check { path, json },
        }
    }
}
