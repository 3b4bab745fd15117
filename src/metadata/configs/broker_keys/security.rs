//! Authentication, encryption and authorization.

use super::super::key::{ConfigKey, Kind, Rule};
use super::super::reason;

pub(super) static SECURITY_KEYS: &[ConfigKey] = &[
    ConfigKey::new("authorizer.class.name", Kind::Text, "")
        .low()
        .refused(reason::AUTHENTICATION)
        .doc("What decides which request is allowed."),
    ConfigKey::new("connection.failed.authentication.delay.ms", Kind::Int, "100")
        .at_least(0)
        .low()
        .inert(reason::AUTHENTICATION)
        .doc("How long a failed login waits for its answer."),
    ConfigKey::new("connections.max.reauth.ms", Kind::Long, "0")
        .inert(reason::AUTHENTICATION)
        .doc("After how long a connection has to log in again."),
    ConfigKey::new("delegation.token.expiry.check.interval.ms", Kind::Long, "3600000")
        .at_least(1)
        .low()
        .inert(reason::TOKENS)
        .doc("How often expired tokens are removed."),
    ConfigKey::new("delegation.token.expiry.time.ms", Kind::Long, "86400000")
        .at_least(1)
        .inert(reason::TOKENS)
        .doc("How long a token is valid without renewal."),
    ConfigKey::new("delegation.token.max.lifetime.ms", Kind::Long, "604800000")
        .at_least(1)
        .inert(reason::TOKENS)
        .doc("How long a token can be renewed."),
    ConfigKey::unset("delegation.token.secret.key", Kind::Password)
        .refused(reason::TOKENS)
        .doc("The secret that tokens are signed with."),
    ConfigKey::new(
        "principal.builder.class",
        Kind::Class,
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
    )
    .per_node()
    .refused(reason::PLUGINS)
    .doc("A class that names the user behind a connection."),
    ConfigKey::unset("sasl.client.callback.handler.class", Kind::Class)
        .refused(reason::PLUGINS)
        .doc("A class that gives a broker its own credentials."),
    ConfigKey::new("sasl.enabled.mechanisms", Kind::List, "GSSAPI")
        .per_node()
        .refused(reason::AUTHENTICATION)
        .doc("The ways in which clients may log in."),
    ConfigKey::unset("sasl.jaas.config", Kind::Password)
        .per_node()
        .refused(reason::AUTHENTICATION)
        .doc("The login module and its options."),
    ConfigKey::new("sasl.kerberos.kinit.cmd", Kind::Text, "/usr/bin/kinit")
        .per_node()
        .inert(reason::AUTHENTICATION)
        .doc("The kinit command."),
    ConfigKey::new("sasl.kerberos.min.time.before.relogin", Kind::Long, "60000")
        .per_node()
        .inert(reason::AUTHENTICATION)
        .doc("The least time between two Kerberos logins."),
    ConfigKey::new("sasl.kerberos.principal.to.local.rules", Kind::List, "DEFAULT")
        .per_node()
        .inert(reason::AUTHENTICATION)
        .doc("How a Kerberos principal becomes a user name."),
    ConfigKey::unset("sasl.kerberos.service.name", Kind::Text)
        .per_node()
        .inert(reason::AUTHENTICATION)
        .doc("The Kerberos name of the service."),
    ConfigKey::new("sasl.kerberos.ticket.renew.jitter", Kind::Double, "0.05")
        .per_node()
        .inert(reason::AUTHENTICATION)
        .doc("What varies in the time of a renewal."),
    ConfigKey::new("sasl.kerberos.ticket.renew.window.factor", Kind::Double, "0.8")
        .per_node()
        .inert(reason::AUTHENTICATION)
        .doc("Which share of a ticket's life passes before it is renewed."),
    ConfigKey::unset("sasl.login.callback.handler.class", Kind::Class)
        .refused(reason::PLUGINS)
        .doc("A class that answers a login module's questions."),
    ConfigKey::unset("sasl.login.class", Kind::Class)
        .refused(reason::PLUGINS)
        .doc("A class that logs in."),
    ConfigKey::unset("sasl.login.connect.timeout.ms", Kind::Int)
        .low()
        .inert(reason::AUTHENTICATION)
        .doc("How long a connection to a login service may take."),
    ConfigKey::unset("sasl.login.read.timeout.ms", Kind::Int)
        .low()
        .inert(reason::AUTHENTICATION)
        .doc("How long a login service may take to answer."),
    ConfigKey::new("sasl.login.refresh.buffer.seconds", Kind::Short, "300")
        .per_node()
        .inert(reason::AUTHENTICATION)
        .doc("How long before its end a credential is renewed at the latest."),
    ConfigKey::new("sasl.login.refresh.min.period.seconds", Kind::Short, "60")
        .per_node()
        .inert(reason::AUTHENTICATION)
        .doc("The least time between two renewals of a credential."),
    ConfigKey::new("sasl.login.refresh.window.factor", Kind::Double, "0.8")
        .per_node()
        .inert(reason::AUTHENTICATION)
        .doc("Which share of a credential's life passes before it is renewed."),
    ConfigKey::new("sasl.login.refresh.window.jitter", Kind::Double, "0.05")
        .per_node()
        .inert(reason::AUTHENTICATION)
        .doc("What varies in the time of a renewal."),
    ConfigKey::new("sasl.login.retry.backoff.max.ms", Kind::Long, "10000")
        .low()
        .inert(reason::AUTHENTICATION)
        .doc("The longest rest between two tries to log in."),
    ConfigKey::new("sasl.login.retry.backoff.ms", Kind::Long, "100")
        .low()
        .inert(reason::AUTHENTICATION)
        .doc("The first rest between two tries to log in."),
    ConfigKey::new("sasl.mechanism.controller.protocol", Kind::Text, "GSSAPI")
        .high()
        .refused(reason::AUTHENTICATION)
        .doc("How brokers log in at the controller."),
    ConfigKey::new("sasl.mechanism.inter.broker.protocol", Kind::Text, "GSSAPI")
        .per_node()
        .refused(reason::AUTHENTICATION)
        .doc("How brokers log in at each other."),
    ConfigKey::unset("sasl.server.callback.handler.class", Kind::Class)
        .refused(reason::PLUGINS)
        .doc("A class that checks a client's credentials."),
    ConfigKey::new("sasl.server.max.receive.size", Kind::Int, "524288")
        .inert(reason::AUTHENTICATION)
        .doc("The largest message of a client that logs in."),
    ConfigKey::new("security.inter.broker.protocol", Kind::Text, "PLAINTEXT")
        .rule(Rule::OneOf(&["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]))
        .refused(reason::AUTHENTICATION)
        .doc("The security between brokers."),
    ConfigKey::unset("security.providers", Kind::Text)
        .low()
        .refused(reason::PLUGINS)
        .doc("Classes that provide security algorithms."),
    ConfigKey::new("ssl.allow.dn.changes", Kind::Boolean, "false")
        .low()
        .inert(reason::AUTHENTICATION)
        .doc("Whether a new certificate may name another owner."),
    ConfigKey::new("ssl.allow.san.changes", Kind::Boolean, "false")
        .low()
        .inert(reason::AUTHENTICATION)
        .doc("Whether a new certificate may name other hosts."),
    ConfigKey::new("ssl.cipher.suites", Kind::List, "")
        .per_node()
        .inert(reason::AUTHENTICATION)
        .doc("The cipher suites of TLS."),
    ConfigKey::new("ssl.client.auth", Kind::Text, "none")
        .rule(Rule::OneOf(&["required", "requested", "none"]))
        .per_node()
        .refused(reason::AUTHENTICATION)
        .doc("Whether clients have to show a certificate."),
    ConfigKey::new("ssl.enabled.protocols", Kind::List, "TLSv1.2,TLSv1.3")
        .per_node()
        .inert(reason::AUTHENTICATION)
        .doc("The versions of TLS."),
    ConfigKey::new("ssl.endpoint.identification.algorithm", Kind::Text, "https")
        .low()
        .per_node()
        .inert(reason::AUTHENTICATION)
        .doc("How the name in a server's certificate is checked."),
    ConfigKey::unset("ssl.engine.factory.class", Kind::Class)
        .low()
        .per_node()
        .refused(reason::PLUGINS)
        .doc("A class that makes TLS engines."),
    ConfigKey::unset("ssl.key.password", Kind::Password)
        .per_node()
        .refused(reason::AUTHENTICATION)
        .doc("The password of the private key."),
    ConfigKey::new("ssl.keymanager.algorithm", Kind::Text, "SunX509")
        .per_node()
        .inert(reason::AUTHENTICATION)
        .doc("The algorithm of key managers."),
    ConfigKey::unset("ssl.keystore.certificate.chain", Kind::Password)
        .per_node()
        .refused(reason::AUTHENTICATION)
        .doc("The certificate chain in PEM form."),
    ConfigKey::unset("ssl.keystore.key", Kind::Password)
        .per_node()
        .refused(reason::AUTHENTICATION)
        .doc("The private key in PEM form."),
    ConfigKey::unset("ssl.keystore.location", Kind::Text)
        .per_node()
        .refused(reason::AUTHENTICATION)
        .doc("Where the key store is."),
    ConfigKey::unset("ssl.keystore.password", Kind::Password)
        .per_node()
        .refused(reason::AUTHENTICATION)
        .doc("The password of the key store."),
    ConfigKey::new("ssl.keystore.type", Kind::Text, "JKS")
        .per_node()
        .inert(reason::AUTHENTICATION)
        .doc("The format of the key store."),
    ConfigKey::new("ssl.principal.mapping.rules", Kind::Text, "DEFAULT")
        .low()
        .inert(reason::AUTHENTICATION)
        .doc("How the owner of a certificate becomes a user name."),
    ConfigKey::new("ssl.protocol", Kind::Text, "TLSv1.3")
        .per_node()
        .inert(reason::AUTHENTICATION)
        .doc("The version of TLS that is preferred."),
    ConfigKey::unset("ssl.provider", Kind::Text)
        .per_node()
        .inert(reason::AUTHENTICATION)
        .doc("The provider of TLS."),
    ConfigKey::unset("ssl.secure.random.implementation", Kind::Text)
        .low()
        .per_node()
        .inert(reason::AUTHENTICATION)
        .doc("The source of random numbers for TLS."),
    ConfigKey::new("ssl.trustmanager.algorithm", Kind::Text, "PKIX")
        .per_node()
        .inert(reason::AUTHENTICATION)
        .doc("The algorithm of trust managers."),
    ConfigKey::unset("ssl.truststore.certificates", Kind::Password)
        .per_node()
        .refused(reason::AUTHENTICATION)
        .doc("Trusted certificates in PEM form."),
    ConfigKey::unset("ssl.truststore.location", Kind::Text)
        .per_node()
        .refused(reason::AUTHENTICATION)
        .doc("Where the trust store is."),
    ConfigKey::unset("ssl.truststore.password", Kind::Password)
        .per_node()
        .refused(reason::AUTHENTICATION)
        .doc("The password of the trust store."),
    ConfigKey::new("ssl.truststore.type", Kind::Text, "JKS")
        .per_node()
        .inert(reason::AUTHENTICATION)
        .doc("The format of the trust store."),
];
