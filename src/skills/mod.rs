//! Skills: directories with a `SKILL.md` that instructs the model, and with the files that it uses. This module reads
//! and checks skills and resolves precedence. It does not decide whether a skill may be used.

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

/// Name of the file with the instructions of a skill.
pub(crate) const SKILL_FILE: &str = "SKILL.md";
/// Folders of a project that can contain skills. Of two skills with the same name, the one in the earlier folder is
/// used.
pub(crate) const PROJECT_FOLDERS: [&str; 3] = [".aye/skills", ".agents/skills", ".claude/skills"];
/// Folders of skills in the home directory, searched after `skills` in the config directory.
pub(crate) const HOME_FOLDERS: [&str; 2] = [".agents/skills", ".claude/skills"];
