//! The tool that loads skills. The model requests a skill's instructions by the name of the skill.

mod description;
mod skill_tool;
#[cfg(test)]
mod tests;

pub(super) use crate::tools::session_skills::SKILL;

pub(super) use skill_tool::SkillTool;

/// Names that other coding agents use for this tool.
const ALIASES: [&str; 4] = ["activate_skill", "load_skill", "use_skill", "read_skill"];

/// Returns whether `name` refers to the tool that loads a skill.
pub(super) fn is_called(name: &str) -> bool {
    name.eq_ignore_ascii_case(SKILL)
        || ALIASES.iter().any(|alias| alias.replace('_', "").eq_ignore_ascii_case(&name.replace('_', "")))
}
