//! Tests of a command's network access. The client is this program itself, so the tests do not depend on a shell.

use super::*;
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrIn, sendmmsg, sendmsg};
use std::io::IoSlice;
use std::net::{SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::time::Instant;

/// Address in a range reserved for documentation, at which there is no server.
const NOBODY: &str = "192.0.2.1:80";
const ADDRESS: &str = "AYE_TEST_ADDRESS";
const CLIENT: &str = "sys::sandbox::tests::network::a_client_reports_its_connection";

#[test]
#[ignore = "child process of another test"]
fn a_client_reports_its_connection() {
    let address: SocketAddr = std::env::var(ADDRESS).unwrap().parse().unwrap();
    match TcpStream::connect_timeout(&address, Duration::from_secs(5)) {
        Ok(_) => println!("\nreached"),
        Err(error) => println!("\nnot reached: {error}"),
    }
}

/// Returns whether an empty network namespace keeps a client from connecting to the address. It does not if software
/// outside this machine intercepts connections.
fn kernel_holds(address: &str) -> bool {
    let mut client = std::process::Command::new("unshare");
    client.args(["--user", "--map-root-user", "--net"]).arg(std::env::current_exe().unwrap());
    client.args(["--ignored", "--exact", CLIENT, "--nocapture"]).env(ADDRESS, address);
    let reached = client.output().is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("\nreached"));
    if reached {
        println!("skipped: on this machine an empty network namespace reaches {address} as well");
    }
    !reached
}

/// Returns a line that runs a test of this program as a client.
fn client(ground: &Ground, test: &str) -> String {
    // A command has its own `/tmp`, and the tests may have been built in the real one.
    let client = ground.path("client");
    let program = std::env::current_exe().unwrap();
    if fs::hard_link(&program, &client).is_err() {
        fs::copy(&program, &client).unwrap();
    }
    format!("'{}' --ignored --exact {test} --nocapture", client.display())
}

/// Runs a confined client and returns what it reports about the connection.
async fn connection(ground: &Ground, address: &str, confinement: Confinement) -> String {
    let text = output(&format!("{ADDRESS}={address} {}", client(ground, CLIENT)), confinement).await;
    let said = text.lines().find(|line| line.contains("reached"));
    said.unwrap_or_else(|| panic!("the client did not run: {text}")).to_owned()
}

fn open(ground: &Ground) -> Confinement {
    Confinement { network: NetworkAccess::Open, ..ground.confinement() }
}

async fn namespace(confinement: Confinement) -> String {
    output("readlink /proc/self/ns/net", confinement).await.trim_end().to_owned()
}

#[tokio::test]
async fn a_command_has_its_own_network_namespace() {
    let ground = Ground::new();
    let machine = fs::read_link("/proc/self/ns/net").unwrap();
    assert_ne!(namespace(ground.confinement()).await, machine.to_str().unwrap());
}

#[tokio::test]
async fn local_servers_are_unreachable() {
    let ground = Ground::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap().to_string();
    let said = connection(&ground, &address, ground.confinement()).await;
    assert!(said.starts_with("not reached") || !kernel_holds(&address), "{said}");
}

#[tokio::test]
async fn remote_servers_are_unreachable() {
    let ground = Ground::new();
    let said = connection(&ground, NOBODY, ground.confinement()).await;
    assert!(said.starts_with("not reached") || !kernel_holds(NOBODY), "{said}");
}

#[tokio::test]
async fn a_command_with_full_network_access_uses_the_host_network() {
    let ground = Ground::new();
    let machine = fs::read_link("/proc/self/ns/net").unwrap();
    assert_eq!(namespace(open(&ground)).await, machine.to_str().unwrap());
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    assert_eq!(connection(&ground, &server.local_addr().unwrap().to_string(), open(&ground)).await, "reached");
}

const EVERY_CALL: &str = "sys::sandbox::tests::network::a_client_uses_every_call_that_names_an_address";

/// Names an address in every call that can, and also exchanges data with local servers.
#[test]
#[ignore = "child process of another test"]
fn a_client_uses_every_call_that_names_an_address() {
    let server = |number: u8| SocketAddrV4::new([192, 0, 2, number].into(), 443);
    TcpStream::connect(server(1)).unwrap_err();
    let datagrams = UdpSocket::bind("0.0.0.0:0").unwrap();
    datagrams.send_to(b"x", server(2)).unwrap_err();
    let (to, data) = (|number| SockaddrIn::from(server(number)), [IoSlice::new(b"x")]);
    sendmsg(datagrams.as_raw_fd(), &data, &[], MsgFlags::empty(), Some(&to(3))).unwrap_err();
    let mut headers = MultiHeaders::preallocate(2, None);
    let addresses = [Some(to(4)), Some(to(5))];
    let none: [nix::sys::socket::ControlMessage<'_>; 0] = [];
    let sent = sendmmsg(datagrams.as_raw_fd(), &mut headers, [&data, &data], addresses, none, MsgFlags::empty());
    assert!(sent.is_err());

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    std::io::Write::write_all(&mut stream, b"x").unwrap();
    let receiver = UdpSocket::bind("[::1]:0").unwrap();
    UdpSocket::bind("[::1]:0").unwrap().send_to(b"data", receiver.local_addr().unwrap()).unwrap();
    assert_eq!(receiver.recv(&mut [0; 8]).unwrap(), 4);
    let socket = std::env::temp_dir().join("socket");
    let receiver = UnixDatagram::bind(&socket).unwrap();
    let sender = UnixDatagram::unbound().unwrap();
    sender.send_to(b"data", &socket).unwrap();
    sendmsg::<()>(sender.as_raw_fd(), &data, &[], MsgFlags::empty(), None).unwrap_err();
    sender.connect(&socket).unwrap();
    sendmsg::<()>(sender.as_raw_fd(), &data, &[], MsgFlags::empty(), None).unwrap();
    assert_eq!([receiver.recv(&mut [0; 8]).unwrap(), receiver.recv(&mut [0; 8]).unwrap()], [4, 1]);
    assert!(UnixStream::connect("/nobody").is_err());
    println!("\ncompleted");
}

/// Runs a line and returns the addresses to which it tried to connect without a proxy.
async fn bypasses(line: &str, confinement: Confinement) -> Vec<String> {
    let finished = try_run(line, confinement).await.unwrap();
    assert_eq!(finished.end, End::Exited(0), "{line}: {}", finished.stderr.text(4096));
    finished.bypasses.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn every_attempt_to_reach_another_machine_is_recorded_although_the_command_succeeds() {
    let ground = Ground::new();
    let line = format!("{} > out; grep -q completed out || exit 1; rm out", client(&ground, EVERY_CALL));
    let servers = [1, 2, 3, 4, 5].map(|number| format!("192.0.2.{number}:443"));
    assert_eq!(bypasses(&line, ground.confinement()).await, servers);
    let layered = bypasses(&line, ground.layered()).await;
    assert_eq!(layered, servers, "in a copy of the workspace");
}

#[tokio::test]
async fn attempts_of_common_programs_are_recorded_whatever_follows_them() {
    let python = |text: &str| format!("python3 -c \"import socket as s\ntry:\n {text}\nexcept OSError: pass\"");
    let (server, name) = (&["192.0.2.1:443"][..], &[][..]);
    let cases = [
        ("python3", python("s.create_connection(('192.0.2.1', 443))"), server),
        ("python3", python("s.socket().connect_ex(('192.0.2.1', 443))"), server),
        ("python3", python("s.socket(type=s.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 443))"), server),
        ("python3", format!("{} 2>&1 | cat | tail -n 3", python("s.create_connection(('192.0.2.1', 443))")), server),
        ("curl", "curl -sk --noproxy '*' https://192.0.2.1/ | cat".to_owned(), server),
        ("curl", "(curl -s --noproxy '*' http://192.0.2.1:443/ & wait); true".to_owned(), server),
        ("getent", "getent hosts example.com; true".to_owned(), name),
        ("node", "node -e \"fetch('https://registry.npmjs.org/left-pad')\" 2>&1 | tail -3".to_owned(), name),
    ];
    for (program, line, expected) in cases {
        if std::process::Command::new(program).arg("--version").output().is_err() {
            println!("skipped: there is no {program} here: {line}");
            continue;
        }
        let ground = Ground::new();
        let found = bypasses(&line, ground.confinement()).await;
        if expected.is_empty() {
            assert!(found.iter().any(|address| address.ends_with(":53")), "{line}: {found:?}");
        } else {
            assert_eq!(found, expected, "{line}");
        }
    }
}

#[tokio::test]
async fn connections_of_a_command_with_full_network_access_are_not_recorded() {
    let ground = Ground::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let line = format!("exec 3<>/dev/tcp/{}/{}", address.ip(), address.port());
    assert_eq!(bypasses(&line, open(&ground)).await, [""; 0]);
}

#[tokio::test]
async fn thousands_of_attempts_are_recorded_in_bounded_space_and_time() {
    let ground = Ground::new();
    let line = "for ((port = 1000; port < 11000; port++)); do : < /dev/udp/192.0.2.1/$port; done 2>/dev/null; true";
    let start = Instant::now();
    let found = bypasses(line, ground.confinement()).await;
    assert_eq!((found.len(), found[0].as_str()), (64, "192.0.2.1:1000"));
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_command_that_is_killed_while_it_connects_ends_at_once_and_is_reported() {
    let ground = Ground::new();
    let line = "while true; do : < /dev/udp/192.0.2.1/80; done 2>/dev/null & while true; do : < /dev/udp/192.0.2.2/80; done";
    let mut spec = spec(line, ground.confinement());
    spec.timeout = Duration::from_secs(1);
    let (live, _received) = mpsc::channel(1);
    let start = Instant::now();
    let finished = run(spec, live, CancellationToken::new()).await.unwrap();
    assert_eq!(finished.end, End::TimedOut);
    assert_eq!(finished.bypasses.len(), 2, "{:?}", finished.bypasses);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}
