//! Describes the tool that loads skills, by listing the skills' names with one line each, up to a limit.

use crate::skills::SkillSet;
use crate::tools::described_list::described_list;

const INTRODUCTION: &str = "Loads the instructions of a skill. Load a skill before you start the work it covers. Skills:";

/// Returns the description, or `None` if there is no skill that the model can load.
pub(super) fn describe(set: &SkillSet) -> Option<String> {
    let skills: Vec<(&str, &str)> = set.for_model().map(|skill| (skill.name(), skill.manifest.description.as_str())).collect();
    (!skills.is_empty()).then(|| format!("{INTRODUCTION}\n{}", described_list(&skills)))
}
