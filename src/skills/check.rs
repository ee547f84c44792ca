//! Checks the skills in a folder and reports their errors to the skill author.

use super::SKILL_FILE;
use super::candidate::{Candidate, CandidateContents, Folder};
use super::fault::Fault;
use super::manifest::{Manifest, ParsedManifest};
use super::tree::{Detail, read_tree};
use serde::Serialize;
use std::collections::HashSet;

/// Errors and warnings for a skill or agent file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct SkillReport {
    pub file: String,
    pub errors: Vec<Fault>,
    pub warnings: Vec<Fault>,
}

/// Reports the errors in the folder and in each of its skills.
pub(crate) fn check(folder: &Folder) -> Vec<SkillReport> {
    let contents = folder.contents(&mut HashSet::new());
    let of_folder =
        |message: String| SkillReport { file: folder.shown.clone(), errors: vec![Fault::general(message)], warnings: Vec::new() };
    let mut reports: Vec<SkillReport> = contents.candidates.iter().map(report).collect();
    reports.extend(contents.problem.map(|problem| of_folder(format!("the folder {problem}"))));
    let outside = contents.outside.map(|to| format!("a symlink to `{}`, outside the project", to.display()));
    reports.extend(outside.map(of_folder));
    if contents.rest > 0 {
        reports.push(of_folder(format!("{} skills beyond the limit are ignored", contents.rest)));
    }
    reports
}

/// Reports the errors in a single skill of a folder. Returns `None` if there is no such skill.
pub(crate) fn check_one(folder: &Folder, name: &str) -> Option<SkillReport> {
    folder.find(name).as_ref().map(report)
}

fn report(candidate: &Candidate) -> SkillReport {
    let file = candidate.file();
    let failed =
        |message: String| SkillReport { file: file.clone(), errors: vec![Fault::general(message)], warnings: Vec::new() };
    let (text, left_out) = match &candidate.contents {
        CandidateContents::Read { text, left_out, files: Some(_) } => (text, left_out.clone()),
        // The files of the user's own skills have not been read at this point.
        CandidateContents::Read { text, files: None, .. } => match read_tree(&candidate.real, &candidate.real, Detail::Listed) {
            Ok(tree) => (text, tree.left_out),
            Err(why) => return failed(why),
        },
        CandidateContents::Outside { to } => return failed(format!("a symlink to `{}`, outside the project", to.display())),
        CandidateContents::Closed { why } => return failed(why.clone()),
    };
    let ParsedManifest { errors, mut warnings, .. } = Manifest::read(&candidate.name, text);
    let ignored = |(name, why): (String, String)| Fault::general(format!("`{name}` is not part of the skill: {why}"));
    warnings.extend(left_out.into_iter().filter(|(name, _)| name != SKILL_FILE).map(ignored));
    SkillReport { file, errors, warnings }
}
