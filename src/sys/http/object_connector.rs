//! HTTP client for object stores: gives the library that implements the stores' protocols aye's own client, with its
//! certificates and proxies.

use super::{HttpError, Timeouts, no_certificates, root_cause, roots};
use object_store::client::{HttpClient, HttpConnector};
use object_store::{ClientConfigKey, ClientOptions};

/// Creates the HTTP client for an object store.
#[derive(Debug)]
pub(crate) struct ObjectConnector {
    timeouts: Timeouts,
    /// Whether the store is on this machine, in which case neither certificates nor a proxy are used.
    local: bool,
}

impl ObjectConnector {
    pub(crate) fn new(timeouts: Timeouts, local: bool) -> Self {
        Self { timeouts, local }
    }

    fn client(&self, allow_http: bool) -> Result<reqwest::Client, HttpError> {
        let builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .connect_timeout(self.timeouts.connect)
            .read_timeout(self.timeouts.idle)
            .https_only(!allow_http)
            .user_agent(concat!("aye/", env!("CARGO_PKG_VERSION")));
        let builder = if self.local {
            builder.no_proxy().tls_backend_preconfigured(no_certificates()?)
        } else {
            // An error means that a provider is already installed, which is just as good.
            let _ = rustls::crypto::ring::default_provider().install_default();
            roots::with_authorities(builder)?
        };
        builder.build().map_err(|error| HttpError::Setup(root_cause(&error)))
    }
}

impl HttpConnector for ObjectConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        // Metadata servers of cloud platforms use plain http, on the same network link.
        let allow_http = options.get_config_value(&ClientConfigKey::AllowHttp).is_some_and(|value| value == "true");
        let client =
            self.client(allow_http).map_err(|error| object_store::Error::Generic { store: "HTTP", source: Box::new(error) })?;
        Ok(HttpClient::new(client))
    }
}
