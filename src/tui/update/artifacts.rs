//! Listing and opening of the artifacts of the session.

use super::draft::take_draft;
use super::notes::show_called_for;
use crate::protocol::{ARTIFACT_SCHEME, Artifact, Query, SessionQuery, size};
use crate::text;
use crate::tui::metrics::GUTTER;
use crate::tui::model::{Effect, Model};
use crate::tui::transcript::{Kind, Tone};

/// Cells of the number and the size, with spaces.
const BEFORE_NAME: usize = 17;

/// Handles `/artifacts`: lists the artifacts, or opens one by its number or URI.
pub(crate) fn artifacts(model: &mut Model, which: &str, now: u64, effects: &mut Vec<Effect>) {
    if which.is_empty() {
        take_draft(model, now, effects);
        return effects.push(Effect::Ask(Query::Session(SessionQuery::ListArtifacts)));
    }
    let listed = which.parse::<usize>().ok().and_then(|number| model.info.artifacts.get(number.checked_sub(1)?));
    let uri = match listed {
        Some(artifact) => artifact.uri.clone(),
        None if which.starts_with(ARTIFACT_SCHEME) => which.to_owned(),
        None => return model.show_toast("give the number of an artifact; `/artifacts` lists them", now),
    };
    take_draft(model, now, effects);
    effects.push(Effect::Ask(Query::Session(SessionQuery::ReadArtifact { uri })));
}

pub(crate) fn listed(model: &mut Model, artifacts: Vec<Artifact>) {
    let head = match artifacts.len() {
        0 => "no artifacts in this session; long content, such as command output over 10 KB, is stored as one".to_owned(),
        count => format!("artifacts: {count} {} /artifacts NUMBER opens one", model.screen.glyphs.dot),
    };
    let mut rows = vec![head];
    let room = usize::from(model.screen.size.width.saturating_sub(GUTTER)).saturating_sub(BEFORE_NAME).max(1);
    for (index, artifact) in artifacts.iter().enumerate() {
        let name = text::clean_line(&artifact.name);
        let name = text::truncate(&name, room);
        rows.push(format!("{:>3}  {:>10}  {name}", index + 1, size(artifact.bytes)));
    }
    model.info.artifacts = artifacts;
    show_called_for(model, Kind::Note { text: rows.join("\n"), tone: Tone::Plain });
}
