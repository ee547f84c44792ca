//! Policy bundles from a URL, in the format of Open Policy Agent: a gzip-compressed tar archive with `policy.toml` and
//! an optional signature. The last valid policy is stored in a file and applies until it expires.

mod archive;
mod cache;
mod fetch;
mod signature;

pub(crate) use cache::PolicyCache;
pub(crate) use fetch::refresh;
pub(crate) use signature::VerificationKey;
