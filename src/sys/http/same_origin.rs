//! HTTP client that sends requests to one server's origin and no other.

use super::roots::with_authorities;
use super::{HttpError, HttpServer, Timeouts, Transport, no_certificates, root_cause};
use reqwest::redirect::{Attempt, Policy};
use std::time::Duration;

const REDIRECTS: usize = 5;

/// Creates a client for the server at `url`, which must use HTTPS unless it is on this machine. A redirect is followed
/// only if it leaves the request unchanged and stays on the same origin. Any other redirect is returned as the
/// response, so no server can forward a signed request to another one.
pub(crate) fn same_origin_client(url: &str) -> Result<reqwest::Client, HttpError> {
    let before_query = url.split(['?', '#']).next().unwrap_or(url);
    let server = HttpServer::new(before_query, Timeouts::default())?;
    let builder = reqwest::Client::builder()
        .redirect(Policy::custom(|attempt| if allows_redirect(&attempt) { attempt.follow() } else { attempt.stop() }))
        .retry(reqwest::retry::never())
        .connect_timeout(Duration::from_secs(10))
        .user_agent(concat!("aye/", env!("CARGO_PKG_VERSION")));
    let builder = match server.transport {
        Transport::Loopback | Transport::LinkLocal => builder.no_proxy().tls_backend_preconfigured(no_certificates()?),
        Transport::Tls => {
            let _ = rustls::crypto::ring::default_provider().install_default();
            with_authorities(builder.https_only(true))?
        }
    };
    builder.build().map_err(|error| HttpError::Setup(root_cause(&error)))
}

fn allows_redirect(attempt: &Attempt<'_>) -> bool {
    let keeps_request = matches!(attempt.status().as_u16(), 307 | 308);
    let same_origin = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
    keeps_request && same_origin && attempt.previous().len() <= REDIRECTS
}
