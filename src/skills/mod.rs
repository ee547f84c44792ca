//! Skills: directories that contain a `SKILL.md` with instructions for the model, and other files used by the skill.
//! This module reads and validates skills and resolves their precedence, but does not decide whether a skill may be
//! used.

mod candidate;
mod check;
mod fault;
mod front_matter;
mod manifest;
mod origin;
mod set;
mod skill;
mod tree;
mod unused;

pub(crate) use candidate::{Candidate, CandidateContents, Folder, FolderContents};
pub(crate) use check::{SkillReport, check, check_one};
pub(crate) use fault::Fault;
pub(crate) use front_matter::{FrontMatterEntry, FrontMatterFile, FrontMatterValue, parse, split_front_matter};
pub(crate) use manifest::{split_tools, wrong_name};
pub(crate) use origin::Origin;
pub(crate) use set::{PluginSkills, SkillFolders, SkillSet};
pub(crate) use skill::Skill;
pub(crate) use tree::PinnedFile;
pub(crate) use unused::{BrokenFile, HiddenFile, broken_notice};

/// Name of the file that contains a skill's instructions.
pub(crate) const SKILL_FILE: &str = "SKILL.md";
/// Project folders that can contain skills. If two skills have the same name, the one in the earlier folder takes
/// precedence.
pub(crate) const PROJECT_FOLDERS: [&str; 3] = [".aye/skills", ".agents/skills", ".claude/skills"];
/// Skill folders in the home directory, searched after `skills` in the config directory.
pub(crate) const HOME_FOLDERS: [&str; 2] = [".agents/skills", ".claude/skills"];
