//! Escalation: paths to which an approval may allow access after the sandbox blocked a command.

use crate::policy::layer::CompiledLayer;
use crate::policy::paths::{Context, is_in_other_home, is_process_path, protected};
use jiff::Timestamp;
use std::path::Path;

/// Returns whether an approval may let one command write to this real path outside the workspace. Never for protected
/// paths, aye's own files or files of the kernel, and never against a rule.
pub(crate) fn can_open_for_write(path: &Path, layers: &[CompiledLayer], context: &Context) -> bool {
    let guarded = context.is_own(path) || protected(path, context).is_some() || is_process_path(path, true);
    let shut = |layer: &CompiledLayer| {
        let rules = layer.write.as_ref();
        rules.is_some_and(|rules| rules.denying_rule(layer.scope, path, Timestamp::UNIX_EPOCH).is_some())
    };
    !guarded && !layers.iter().any(shut)
}

/// Returns whether an approval may let one command read this real path outside the workspace. Never for credentials or
/// aye's own files, and never against a rule.
pub(crate) fn can_open_for_read(path: &Path, layers: &[CompiledLayer], context: &Context) -> bool {
    let guarded = context.is_own(path)
        || context.credential_place(path).is_some()
        || is_in_other_home(path, context)
        || is_process_path(path, false);
    let shut = |layer: &CompiledLayer| {
        let rules = layer.read.as_ref();
        rules.is_some_and(|rules| rules.denying_rule(layer.scope, path, Timestamp::UNIX_EPOCH).is_some())
    };
    !guarded && !layers.iter().any(shut)
}
