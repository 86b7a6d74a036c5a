BEGIN TRANSACTION;
CREATE TABLE access (
	user VARCHAR(64) NOT NULL, 
	dataset VARCHAR(64) NOT NULL, 
	PRIMARY KEY (user, dataset), 
	FOREIGN KEY(user) REFERENCES users (name)
);
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0001');
CREATE TABLE answers (
	id VARCHAR(32) NOT NULL, 
	dataset VARCHAR(64) NOT NULL, 
	version VARCHAR(200) NOT NULL, 
	"query" VARCHAR(64), 
	request TEXT NOT NULL, 
	state VARCHAR(10) NOT NULL, 
	created FLOAT NOT NULL, 
	place BIGINT NOT NULL, 
	entry_hash VARCHAR(64) NOT NULL, 
	claim VARCHAR(32), 
	attempts INTEGER NOT NULL, 
	slot FLOAT, 
	noisy TEXT, 
	PRIMARY KEY (id), 
	CONSTRAINT one_standing_answer UNIQUE (dataset, "query")
);
CREATE TABLE api_keys (
	id VARCHAR(32) NOT NULL, 
	user VARCHAR(64) NOT NULL, 
	label VARCHAR(200) NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	scopes VARCHAR(200) NOT NULL, 
	created FLOAT NOT NULL, 
	expires FLOAT, 
	revoked FLOAT, 
	PRIMARY KEY (id), 
	FOREIGN KEY(user) REFERENCES users (name)
);
CREATE TABLE audit (
	id INTEGER NOT NULL, 
	at FLOAT NOT NULL, 
	actor VARCHAR(64) NOT NULL, 
	event VARCHAR(40) NOT NULL, 
	subject VARCHAR(200) NOT NULL, 
	detail TEXT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE jobs (
	id VARCHAR(32) NOT NULL, 
	user VARCHAR(64) NOT NULL, 
	answer VARCHAR(32) NOT NULL, 
	asked TEXT NOT NULL, 
	reading TEXT NOT NULL, 
	"key" VARCHAR(200) NOT NULL, 
	fingerprint VARCHAR(64) NOT NULL, 
	micro BIGINT NOT NULL, 
	created FLOAT NOT NULL, 
	cancelled BOOLEAN NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(answer) REFERENCES answers (id), 
	FOREIGN KEY(user) REFERENCES users (name), 
	CONSTRAINT one_job_a_key UNIQUE (user, "key")
);
CREATE TABLE ledger_entries (
	seq BIGINT NOT NULL, 
	at VARCHAR(40) NOT NULL, 
	kind VARCHAR(10) NOT NULL, 
	charge VARCHAR(64) NOT NULL, 
	user VARCHAR(200) NOT NULL, 
	dataset VARCHAR(200) NOT NULL, 
	project VARCHAR(200) NOT NULL, 
	micro BIGINT NOT NULL, 
	note TEXT NOT NULL, 
	previous VARCHAR(64) NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	PRIMARY KEY (seq)
);
INSERT INTO "ledger_entries" VALUES(1,'2026-11-18T21:33:55.189942+00:00','cap','','','census','',5000000,'granted on the command line','509b25dffdbaf41ec3e40f17480835153b91bbd356a7a2793d1bfe939b208eb1','759c242cd062437396cda874920f44f11cb63528a2773b76394ed968b86978b0');
INSERT INTO "ledger_entries" VALUES(2,'2026-11-18T21:33:57.542115+00:00','reserved','0312ad95a9064c258f867ca4fc241fef','','census','',1000000,'countwise release','759c242cd062437396cda874920f44f11cb63528a2773b76394ed968b86978b0','7bc55a43da9811bfa1a4e79d1ab68c794c0b4e67caf6e00f4847af8d57f302ed');
INSERT INTO "ledger_entries" VALUES(3,'2026-11-18T21:34:02.460733+00:00','computed','0312ad95a9064c258f867ca4fc241fef','','census','',0,'','7bc55a43da9811bfa1a4e79d1ab68c794c0b4e67caf6e00f4847af8d57f302ed','dce5e241224a67542abccc5d162e6085a739063bd13a0701300d344369deef04');
INSERT INTO "ledger_entries" VALUES(4,'2026-11-18T21:34:02.462235+00:00','released','0312ad95a9064c258f867ca4fc241fef','','census','',0,'','dce5e241224a67542abccc5d162e6085a739063bd13a0701300d344369deef04','96dfa569c970e55dd8d61102824f45ff38dea33f6ed14e256d9d3d9eea0a7e5b');
INSERT INTO "ledger_entries" VALUES(5,'2026-11-18T21:34:05.729460+00:00','reserved','bf184707158f4034becd41956d0b9023','','census','',1000000,'countwise release','96dfa569c970e55dd8d61102824f45ff38dea33f6ed14e256d9d3d9eea0a7e5b','223b4ef46b5f64658971be8914a28b704fd23302c2f050e7d46b19d86c6446ed');
INSERT INTO "ledger_entries" VALUES(6,'2026-11-18T21:34:05.760439+00:00','returned','bf184707158f4034becd41956d0b9023','','census','',-1000000,'refused before noise was drawn','223b4ef46b5f64658971be8914a28b704fd23302c2f050e7d46b19d86c6446ed','7b3132db2204fe01fb7dd622daeeaace7f3b8b384de9860b6ce88e7c67729ead');
INSERT INTO "ledger_entries" VALUES(7,'2026-11-18T21:34:08.976094+00:00','reserved','55f7df5f9dc942608b1c855887cf4e39','','census','',500000,'countwise release','7b3132db2204fe01fb7dd622daeeaace7f3b8b384de9860b6ce88e7c67729ead','b7655f98bae1c56722e6f2dd5b130656a94338fc6b84d4f3b61eda337d7148c6');
INSERT INTO "ledger_entries" VALUES(8,'2026-11-18T21:34:09.347693+00:00','computed','55f7df5f9dc942608b1c855887cf4e39','','census','',0,'','b7655f98bae1c56722e6f2dd5b130656a94338fc6b84d4f3b61eda337d7148c6','09eb16d99067d8bc444d6750592a2437ce371434e1b854d321f678ae4c6704aa');
INSERT INTO "ledger_entries" VALUES(9,'2026-11-18T21:34:09.349167+00:00','released','55f7df5f9dc942608b1c855887cf4e39','','census','',0,'','09eb16d99067d8bc444d6750592a2437ce371434e1b854d321f678ae4c6704aa','687f41d3526b508ac29a1d9ddf4874a5cdb534af2c83a719f52b3cd7bd97e606');
INSERT INTO "ledger_entries" VALUES(10,'2026-11-18T21:34:12.389558+00:00','cap','','ann','','',3000000,'by steward','687f41d3526b508ac29a1d9ddf4874a5cdb534af2c83a719f52b3cd7bd97e606','d00811317c64670ea72a29f3105b252a765798dd4cfa13068a31c5f4b4293bd0');
INSERT INTO "ledger_entries" VALUES(11,'2026-11-18T21:34:12.391657+00:00','cap','','','','pay',2000000,'by steward','d00811317c64670ea72a29f3105b252a765798dd4cfa13068a31c5f4b4293bd0','9076056282b01f8c687262542ee258f79472fcfc5de3c4e5f51f66c19bf3e347');
INSERT INTO "ledger_entries" VALUES(12,'2026-11-18T21:34:12.410373+00:00','reserved','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','ann','census','pay',500000,'query 0000000000000000000000000000000000000000000000000000000000000000','9076056282b01f8c687262542ee258f79472fcfc5de3c4e5f51f66c19bf3e347','51eca9ae0b80e3bb8a67dd0a2a7d279e76c5952b90b25c2dea75a1fb1c25abbc');
INSERT INTO "ledger_entries" VALUES(13,'2026-11-18T21:34:12.420216+00:00','computed','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','ann','census','pay',0,'','51eca9ae0b80e3bb8a67dd0a2a7d279e76c5952b90b25c2dea75a1fb1c25abbc','334c768f9f13ef1a85eeb087fbbba3efbdb9db4dc36ac793eddcd507e9aac36e');
INSERT INTO "ledger_entries" VALUES(14,'2026-11-18T21:34:12.421788+00:00','released','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','ann','census','pay',0,'','334c768f9f13ef1a85eeb087fbbba3efbdb9db4dc36ac793eddcd507e9aac36e','3f9d698a8e25bad4525421fbbe5541a3efb44243ff3beea6ce056ab64aecf7ac');
INSERT INTO "ledger_entries" VALUES(15,'2026-11-18T21:34:12.433215+00:00','reserved','bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb','ann','census','pay',333334,'query 1111111111111111111111111111111111111111111111111111111111111111','3f9d698a8e25bad4525421fbbe5541a3efb44243ff3beea6ce056ab64aecf7ac','648cd3cd81274f624585aede0d454320739e1a0e3efd835a88227a81ba29d988');
INSERT INTO "ledger_entries" VALUES(16,'2026-11-18T21:34:12.439981+00:00','burnt','bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb','ann','census','pay',0,'could not be computed','648cd3cd81274f624585aede0d454320739e1a0e3efd835a88227a81ba29d988','85f7568101c894c1ec8efd193965869606e1deabe15b4c81762e7889f5e01188');
INSERT INTO "ledger_entries" VALUES(17,'2026-11-18T21:34:12.444591+00:00','reserved','cccccccccccccccccccccccccccccccc','ann','census','pay',250000,'query 2222222222222222222222222222222222222222222222222222222222222222','85f7568101c894c1ec8efd193965869606e1deabe15b4c81762e7889f5e01188','61e90c10b47013963f4b6fdacb620ce56761443607a452bab4db827b1766d647');
INSERT INTO "ledger_entries" VALUES(18,'2026-11-18T21:34:12.447542+00:00','returned','cccccccccccccccccccccccccccccccc','ann','census','pay',-250000,'cancelled before any row was read','61e90c10b47013963f4b6fdacb620ce56761443607a452bab4db827b1766d647','41c2016d708defc3d2ad115ad0d190dd5be5dbf3b52c913fbd2b1da114e12cc9');
INSERT INTO "ledger_entries" VALUES(19,'2026-11-18T21:34:12.451798+00:00','reserved','dddddddddddddddddddddddddddddddd','','census','',125000,'countwise release','41c2016d708defc3d2ad115ad0d190dd5be5dbf3b52c913fbd2b1da114e12cc9','3cb336c0192ba9d4761904df42d3a60e1844350fb45d0c3aa05a5d7d9e8563af');
CREATE TABLE members (
	user VARCHAR(64) NOT NULL, 
	project VARCHAR(64) NOT NULL, 
	PRIMARY KEY (user, project), 
	FOREIGN KEY(user) REFERENCES users (name)
);
CREATE TABLE rates (
	"key" VARCHAR(200) NOT NULL, 
	minute BIGINT NOT NULL, 
	hits INTEGER NOT NULL, 
	PRIMARY KEY ("key")
);
CREATE TABLE sessions (
	token VARCHAR(64) NOT NULL, 
	user VARCHAR(64) NOT NULL, 
	csrf VARCHAR(64) NOT NULL, 
	seen FLOAT NOT NULL, 
	expires FLOAT NOT NULL, 
	PRIMARY KEY (token), 
	FOREIGN KEY(user) REFERENCES users (name)
);
CREATE TABLE users (
	name VARCHAR(64) NOT NULL, 
	role VARCHAR(10) NOT NULL, 
	password VARCHAR(200) NOT NULL, 
	created FLOAT NOT NULL, 
	disabled BOOLEAN NOT NULL, 
	PRIMARY KEY (name)
);
CREATE TABLE workers (
	id VARCHAR(64) NOT NULL, 
	seen FLOAT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE INDEX answers_by_state ON answers (state, place);
CREATE INDEX ix_audit_at ON audit (at);
CREATE INDEX ledger_by_charge ON ledger_entries (charge, kind);
CREATE INDEX ledger_by_dataset ON ledger_entries (dataset, kind);
CREATE INDEX ledger_by_project ON ledger_entries (project, kind);
CREATE INDEX ledger_by_user ON ledger_entries (user, kind);
CREATE INDEX ix_api_keys_user ON api_keys (user);
CREATE INDEX ix_jobs_answer ON jobs (answer);
CREATE INDEX jobs_by_user ON jobs (user, created);
CREATE INDEX ix_sessions_user ON sessions (user);
CREATE TRIGGER ledger_no_update BEFORE UPDATE ON ledger_entries BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_no_delete BEFORE DELETE ON ledger_entries BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
COMMIT;
