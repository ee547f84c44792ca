//! Command that lists and opens the session's artifacts.

use super::draft::take_draft;
use crate::protocol::{ARTIFACT_SCHEME, Artifact, Query, SessionQuery, size};
use crate::text;
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::picker::Row;

/// Handles `/artifacts`, which lists the artifacts or, given a number or URI, opens one of them.
pub(crate) fn artifacts(model: &mut UiModel, which: &str, now: u64, effects: &mut Vec<UiEffect>) {
    if which.is_empty() {
        take_draft(model, now, effects);
        return effects.push(UiEffect::Ask(Query::Session(SessionQuery::ListArtifacts)));
    }
    let listed = which.parse::<usize>().ok().and_then(|number| model.info.artifacts.get(number.checked_sub(1)?));
    let uri = match listed {
        Some(artifact) => artifact.uri.clone(),
        None if which.starts_with(ARTIFACT_SCHEME) => which.to_owned(),
        None => return model.show_toast("no such artifact; `/artifacts` lists the artifacts", now),
    };
    take_draft(model, now, effects);
    effects.push(UiEffect::Ask(Query::Session(SessionQuery::ReadArtifact { uri })));
}

/// Stores the session's artifacts. Returns whether there are any; if there are none, shows a notice.
pub(crate) fn on_listed(model: &mut UiModel, artifacts: Vec<Artifact>, now: u64) -> bool {
    model.info.artifacts = artifacts;
    let has_some = !model.info.artifacts.is_empty();
    if !has_some {
        model.show_toast("no artifacts in this session; long outputs are stored as artifacts", now);
    }
    has_some
}

/// Returns one numbered list row per artifact.
pub(crate) fn rows(model: &UiModel) -> Vec<Row> {
    let row = |(index, artifact): (usize, &Artifact)| {
        let (number, name) = ((index + 1).to_string(), text::clean_line(&artifact.name));
        Row {
            key: number.clone(),
            cells: vec![number, size(artifact.bytes), name.clone()],
            mark: "",
            lacks: None,
            detail: format!("{name}\n{}\n{}", text::clean_line(&artifact.content_type), text::clean_line(&artifact.uri)),
        }
    };
    model.info.artifacts.iter().enumerate().map(row).collect()
}

/// Returns the list of artifacts as text for line mode.
pub(crate) fn to_text(model: &UiModel) -> String {
    let head = format!("artifacts: {}; /artifacts NUMBER opens one", model.info.artifacts.len());
    let lines =
        model.info.artifacts.iter().enumerate().map(|(index, artifact)| {
            format!("{:>3}  {:>10}  {}", index + 1, size(artifact.bytes), text::clean_line(&artifact.name))
        });
    [head].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}
