//! Verdicts on uploading files as artifacts. The file must be readable and within the size limit, and the capability
//! must be granted.

use super::files::{self, FileAccess};
use super::layer::CompiledLayer;
use super::layer_verdict::{ActionFinding, LayerVerdict, combine_layers, unlisted_verdict};
use super::paths::Context;
use crate::protocol::{Action, Place, Target};
use jiff::Timestamp;

const UPLOAD: &str = "Workspace.Upload";

pub(crate) fn judge(target: &Target, layers: &[CompiledLayer], context: &Context, now: Timestamp) -> ActionFinding {
    let read = Action::Read { target: target.clone() };
    let mut finding = files::judge(FileAccess::Read, &read, target, layers, context, now);
    let granted = combine_layers(UPLOAD, layers, |layer| judge_layer(target, layer));
    finding.decided = finding.decided.stricter(granted);
    finding
}

fn judge_layer(target: &Target, layer: &CompiledLayer) -> Option<LayerVerdict> {
    let Some(upload) = &layer.bundle.capabilities.upload else { return unlisted_verdict(UPLOAD, layer) };
    let rule = layer.scope.rule(upload.line);
    if let (Some(most), Place::File { bytes }) = (upload.max_file_size_bytes, target.place)
        && bytes > most
    {
        return Some(LayerVerdict::deny(rule, format!("the file is {bytes} bytes; the limit for uploads is {most}")));
    }
    if upload.requires_approval {
        let asked = LayerVerdict::ask(rule, "uploads the file as an artifact");
        return Some(LayerVerdict { approval_rule: upload.approval_rule.clone(), ..asked });
    }
    Some(LayerVerdict::allow(rule, "the policy allows uploads"))
}
