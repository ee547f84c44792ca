//! Paths that an approval may make accessible after the sandbox blocked a command.

use crate::policy::layer::CompiledLayer;
use crate::policy::paths::{Context, is_in_other_home, is_process_path, protected};
use jiff::Timestamp;
use std::path::Path;

/// Returns whether an approval may permit a command to write to this path outside the workspace. `path` must not
/// contain symlinks. Never true for protected paths, aye's own files, kernel files, or paths that a rule denies.
pub(crate) fn can_open_for_write(path: &Path, layers: &[CompiledLayer], context: &Context) -> bool {
    let guarded = context.is_own(path) || protected(path, context).is_some() || is_process_path(path, true);
    let shut = |layer: &CompiledLayer| {
        let rules = layer.write.as_ref();
        rules.is_some_and(|rules| rules.denying_rule(layer.scope, path, Timestamp::UNIX_EPOCH).is_some())
    };
    !guarded && !layers.iter().any(shut)
}

/// Returns whether an approval may permit a command to read this path outside the workspace. `path` must not contain
/// symlinks. Never true for credentials, aye's own files, or paths that a rule denies.
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
