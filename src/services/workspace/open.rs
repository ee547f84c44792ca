//! Opening of buckets with credentials from the environment. No requests are sent.

use super::bucket::{Bucket, prepare_directory};
use super::error::WorkspaceError;
use super::layout;
use crate::config::{StoreKind, WorkspaceStore};
use crate::sys::http::{ObjectConnector, Timeouts};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::local::LocalFileSystem;
use object_store::{BackoffConfig, ObjectStore, RetryConfig};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Time limits of a request.
const TIMEOUTS: Timeouts = Timeouts { connect: Duration::from_secs(10), idle: Duration::from_secs(60) };

/// Opens the bucket that the settings describe.
pub(crate) fn open(store: &WorkspaceStore) -> Result<Bucket, WorkspaceError> {
    let wrong = |error: object_store::Error| WorkspaceError::from_library(format!("cannot open `{}`", store.url()), &error);
    let connector = ObjectConnector::new(TIMEOUTS, store.is_plain_http());
    let objects: Arc<dyn ObjectStore> = match store.kind {
        StoreKind::S3 => Arc::new(s3(store, connector).map_err(wrong)?),
        StoreKind::Google => Arc::new(google(store, connector).map_err(wrong)?),
        StoreKind::Azure => Arc::new(azure(store, connector).map_err(wrong)?),
        StoreKind::Directory => {
            let directory = PathBuf::from(&store.prefix);
            prepare_directory(&directory, layout::FOLDERS)?;
            let files = LocalFileSystem::new_with_prefix(&directory).map_err(wrong)?;
            return Ok(Bucket::new(Arc::new(files), store.url(), String::new(), Some(directory)));
        }
    };
    Ok(Bucket::new(objects, store.url(), store.prefix.clone(), None))
}

/// Returns a retry configuration with few, short attempts, because uploads are retried later anyway.
fn retry() -> RetryConfig {
    let backoff = BackoffConfig { init_backoff: Duration::from_millis(100), max_backoff: Duration::from_secs(2), base: 2.0 };
    RetryConfig { backoff, max_retries: 2, retry_timeout: Duration::from_secs(20) }
}

fn s3(store: &WorkspaceStore, connector: ObjectConnector) -> object_store::Result<impl ObjectStore> {
    let builder = AmazonS3Builder::from_env()
        .with_bucket_name(&store.bucket)
        .with_allow_http(store.is_plain_http())
        .with_retry(retry())
        .with_http_connector(connector);
    let options = [
        (AmazonS3ConfigKey::S3Endpoint, &store.endpoint),
        (AmazonS3ConfigKey::Region, &store.region),
        ("aws_server_side_encryption".parse()?, &store.encryption),
        ("aws_sse_kms_key_id".parse()?, &store.kms_key),
    ];
    let set = options.into_iter().filter_map(|(key, value)| Some((key, value.as_ref()?)));
    set.fold(builder, |builder, (key, value)| builder.with_config(key, value)).build()
}

fn google(store: &WorkspaceStore, connector: ObjectConnector) -> object_store::Result<impl ObjectStore> {
    let builder = GoogleCloudStorageBuilder::from_env()
        .with_bucket_name(&store.bucket)
        .with_config(GoogleConfigKey::Client(object_store::ClientConfigKey::AllowHttp), store.is_plain_http().to_string())
        .with_retry(retry())
        .with_http_connector(connector);
    match &store.endpoint {
        Some(endpoint) => builder.with_base_url(endpoint).build(),
        None => builder.build(),
    }
}

fn azure(store: &WorkspaceStore, connector: ObjectConnector) -> object_store::Result<impl ObjectStore> {
    let builder = MicrosoftAzureBuilder::from_env()
        .with_container_name(&store.bucket)
        .with_allow_http(store.is_plain_http())
        .with_retry(retry())
        .with_http_connector(connector);
    match &store.endpoint {
        Some(endpoint) => builder.with_config(AzureConfigKey::Endpoint, endpoint).build(),
        None => builder.build(),
    }
}
