//! The macros that generated code uses to define clients and servers.

/// Defines the typed client of a service and its functions that are the same for each service.
/// Generated code adds those of the interface.
///
/// `pub struct EchoClient: EchoServer<Echo>` is a client of services that implement the trait
/// `Echo`, which `EchoServer` serves. `with_host OracleServer<Oracle>` names the server and the
/// trait of the host imports. `package` is the package that the code was generated from.
///
/// ```
/// use thalweg_port as port;
///
/// /// The version of the service.
/// pub trait Versioned: Send + Sized + 'static {
///     fn version(&mut self, call: &port::Call) -> String;
/// }
///
/// port::server! {
///     pub struct VersionedServer<S: Versioned>
/// }
///
/// pub const PACKAGE: port::Package = port::Package {
///     name: "example:versioned",
///     version: "0.1.0",
///     layout: 0,
///     methods: &[port::Method::new("versioned.version", "record{}\nstring\n\n")],
///     imports: &[],
///     limits: port::QueueLimits::DEFAULT,
/// };
///
/// impl<S: Versioned> port::Service for VersionedServer<S> {
///     const PACKAGE: &'static port::Package = &PACKAGE;
///
///     fn dispatch(&mut self, incoming: port::Incoming) {
///         incoming.serve(
///             |incoming, ()| Ok(self.0.version(incoming.call())),
///             port::Incoming::reply_value,
///         );
///     }
/// }
///
/// port::client! {
///     pub struct VersionedClient: VersionedServer<Versioned>, package PACKAGE
/// }
///
/// impl VersionedClient {
///     pub fn version(&self) -> port::Pending<String> {
///         self.client.call(0, &(), port::Reply::value)
///     }
/// }
///
/// struct Example;
///
/// impl Versioned for Example {
///     fn version(&mut self, _: &port::Call) -> String {
///         "1.2".to_owned()
///     }
/// }
///
/// let client = VersionedClient::start(|| Example)?;
/// assert_eq!(client.version().wait()?, "1.2");
/// // Crates that open services by other means use the client's package.
/// use port::ServiceClient as _;
/// assert_eq!(VersionedClient::PACKAGE.name, "example:versioned");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[macro_export]
macro_rules! client {
    (
        pub struct $name:ident: $server:ident<$service:ident>, package $package:ident
        $(, with_host $host_server:ident<$host:ident>)?
    ) => {
        /// A client of an instance of the service. Clones share the instance. Dropping the last
        /// clone closes it.
        #[derive(Clone, Debug)]
        pub struct $name {
            client: $crate::Client,
        }

        impl $crate::ServiceClient for $name {
            const PACKAGE: &'static $crate::Package = &$package;

            fn from_client(client: $crate::Client) -> Self {
                Self { client }
            }
        }

        impl $name {
            /// Starts an instance of the service that `make` returns, in this process. After a
            /// panic, `make` is called again.
            ///
            /// # Errors
            /// The runtime cannot be started.
            pub fn start<S: $service>(
                make: impl Fn() -> S + Send + 'static,
            ) -> ::std::result::Result<Self, $crate::Failure> {
                let client = $crate::Client::start(move || $server::new(make()))?;
                ::std::result::Result::Ok(Self { client })
            }

            $(
                /// Starts an instance of the service that `make` returns, and one of the host that
                /// `host` returns.
                ///
                /// # Errors
                /// The runtime cannot be started.
                pub fn start_with_host<S: $service, H: $host>(
                    make: impl Fn() -> S + Send + 'static,
                    host: impl Fn() -> H + Send + 'static,
                ) -> ::std::result::Result<Self, $crate::Failure> {
                    let host = $crate::Client::start(move || $host_server::new(host()))?;
                    let make = move || $server::new(make());
                    let client = $crate::Client::start_with_host(make, &host)?;
                    ::std::result::Result::Ok(Self { client })
                }

                /// The host that `host` returns answers the service's host imports from now on, also
                /// those of clones.
                ///
                /// # Errors
                /// The runtime cannot be started. `version`: the service was opened by its address, and
                /// has other host imports.
                pub fn set_host<H: $host>(
                    &self,
                    host: impl Fn() -> H + Send + 'static,
                ) -> ::std::result::Result<(), $crate::Failure> {
                    let host = $crate::Client::start(move || $host_server::new(host()))?;
                    self.client.set_host(&host)
                }
            )?

            /// Closes the instance for all clones. Calls and streams end as cancelled, and
            /// resources become stale.
            pub fn close(&self) {
                self.client.close();
            }

            /// A client of the same instance whose calls have this timeout.
            #[must_use]
            pub fn with_timeout(&self, timeout: ::std::time::Duration) -> Self {
                Self {
                    client: self.client.with_timeout(timeout),
                }
            }

            /// A client of the same instance whose calls are not nested. Calls that a service makes
            /// with other clients while it serves a call have the deadline of that call and end
            /// with it.
            #[must_use]
            pub fn detached(&self) -> Self {
                Self {
                    client: self.client.detached(),
                }
            }

            /// Submits the calls that `calls` makes with its client as one batch, in their order,
            /// when `calls` returns. This wakes the service once. Each call has its own outcome.
            /// Calls of resources are not part of the batch.
            pub fn batch<R>(&self, calls: impl FnOnce(&Self) -> R) -> R {
                self.client.batch(|client| {
                    calls(&Self {
                        client: client.clone(),
                    })
                })
            }
        }
    };
}

/// Defines the typed client of a resource. Generated code adds the functions of the resource.
///
/// ```
/// use thalweg_port as port;
///
/// port::resource_client! {
///     /// A timer with a name.
///     pub struct TimerClient
/// }
///
/// impl TimerClient {
///     pub fn name(&self) -> port::Pending<String> {
///         let client = self.own.client();
///         client.call(1, &(self.own.handle(),), port::Reply::value)
///     }
/// }
/// ```
#[macro_export]
macro_rules! resource_client {
    ($(#[$doc:meta])* pub struct $name:ident) => {
        $(#[$doc])*
        ///
        /// The resource stays in the service. Dropping its last client closes it.
        #[derive(Debug)]
        pub struct $name {
            own: $crate::OwnedHandle,
        }

        impl $name {
            /// A client of the same resource whose calls have this timeout.
            #[must_use]
            pub fn with_timeout(&self, timeout: ::std::time::Duration) -> Self {
                Self {
                    own: self.own.with_timeout(timeout),
                }
            }

            /// A client of the same resource whose calls are not nested.
            #[must_use]
            pub fn detached(&self) -> Self {
                Self {
                    own: self.own.detached(),
                }
            }
        }

        impl $crate::ResourceClient for $name {
            fn from_own(own: $crate::OwnedHandle) -> Self {
                Self { own }
            }

            fn into_own(self) -> $crate::OwnedHandle {
                self.own
            }
        }
    };
}

/// Defines the server of a service. Generated code implements [`Service`](crate::Service) for it.
/// [`client!`](crate::client) has an example.
#[macro_export]
macro_rules! server {
    (pub struct $name:ident<S: $service:ident>) => {
        #[doc = concat!("The server of an implementation of [`", stringify!($service), "`]. A")]
        /// library exports it, and a client starts it.
        #[derive(Debug)]
        pub struct $name<S>(S);

        impl<S: $service> $name<S> {
            /// A server of `service`.
            pub fn new(service: S) -> Self {
                Self(service)
            }
        }
    };
}
