//! Policy bundles loaded from a URL. They use Open Policy Agent's format: a gzip-compressed tar archive that contains
//! `policy.toml` and, optionally, a signature. The last valid policy is stored in a file and stays in effect until it
//! expires.

mod archive;
mod cache;
mod fetch;
mod signature;

pub(crate) use cache::PolicyCache;
pub(crate) use fetch::refresh;
pub(crate) use signature::VerificationKey;
