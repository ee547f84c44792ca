//! Policy bundles from a URL, in the format of Open Policy Agent: a gzip-compressed tar archive with `policy.toml`, and optionally
//! with a signature. The last good policy is kept in a file, which applies until it expires.

mod archive;
mod cache;
mod fetch;
mod signature;

pub(crate) use cache::PolicyCache;
pub(crate) use fetch::refresh;
pub(crate) use signature::VerificationKey;
