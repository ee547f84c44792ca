//! Loopback test server with prepared responses, and accounts whose data is in a temporary home directory.

use super::*;
use std::sync::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Requests that a test server has received, as text.
pub(super) type Requests = Arc<Mutex<Vec<String>>>;

/// Starts a server that sends each of these responses once, in order. Returns its address and the requests that it
/// receives.
pub(super) async fn serve(responses: Vec<(u16, &'static str, Value)>) -> (String, Requests) {
    serve_after(responses, || ()).await
}

/// Starts a server like [`serve`] that calls `before` between each request and its response.
pub(super) async fn serve_after(
    responses: Vec<(u16, &'static str, Value)>,
    before: impl Fn() + Send + 'static,
) -> (String, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let requests = Requests::default();
    let record = Arc::clone(&requests);
    tokio::spawn(async move {
        for (status, header, body) in responses {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut text = String::new();
            loop {
                let mut bytes = [0; 4096];
                let count = socket.read(&mut bytes).await.unwrap();
                text.push_str(&String::from_utf8_lossy(&bytes[..count]));
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
                if count == 0 || body.len() >= length.unwrap_or(0) {
                    break;
                }
            }
            record.lock().unwrap().push(text);
            before();
            let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
            let head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\n{header}content-length: {}\r\n\r\n", body.len());
            let _ = socket.write_all(format!("{head}{body}").as_bytes()).await;
        }
    });
    (address, requests)
}

/// Home directory that contains files, with an environment that refers to it.
pub(super) struct Home {
    directory: tempfile::TempDir,
    pub learnt: Arc<Mutex<Vec<String>>>,
}

impl Home {
    pub(super) fn with(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        Self { directory, learnt: Arc::default() }
    }

    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.directory.path().join(name)).unwrap()
    }

    pub(super) fn write(&self, name: &str, content: &str) {
        std::fs::write(self.directory.path().join(name), content).unwrap();
    }

    /// Returns the environment with these variables, which must be among those that aye reads.
    pub(super) fn surroundings(&self, variables: &[(&str, &str)]) -> CloudEnvironment {
        for (name, _) in variables {
            assert!(aws::VARIABLES.contains(name) || google::VARIABLES.contains(name), "{name} is not in VARIABLES");
        }
        let learnt = Arc::clone(&self.learnt);
        CloudEnvironment {
            variables: variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            home: self.directory.path().to_owned(),
            roots: Vec::new(),
            learn: Arc::new(move |secret| learnt.lock().unwrap().push(secret.to_owned())),
        }
    }
}
