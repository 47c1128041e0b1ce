package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// announce precedes the address in the first line that a peer prints.
const announce = "peer listens on "

func announced(line string) (string, bool) { return strings.CutPrefix(line, announce) }

// startPeer runs one of the servers below in a process of its own: this program again.
func startPeer(ctx context.Context, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return start(ctx, announced, self, args...)
}

// servePeer is a server that the gateway is compared with, `bare FILE`, `proxy URL` or `push all`, or its clients, `crowd ADDR`. It
// serves until it is killed.
func servePeer(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("usage: go run ./test/bench [-short] [part...]")
	}
	var h http.Handler
	switch args[0] {
	case "bare":
		text, err := os.ReadFile(args[1])
		if err != nil {
			return err
		}
		h = bare(text)
	case "proxy":
		to, err := url.Parse(args[1])
		if err != nil {
			return err
		}
		h = httputil.NewSingleHostReverseProxy(to)
	case "push":
		h = &plainPush{clients: map[chan []byte]struct{}{}}
	case "crowd":
		c, err := newCrowd(args[1])
		if err != nil {
			return err
		}
		h = c
	default:
		return fmt.Errorf("there is no peer %q", args[0])
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(announce + l.Addr().String())
	return (&http.Server{Handler: h, ReadHeaderTimeout: time.Minute}).Serve(l)
}

// bare writes the same bytes at /book, and a plain 404 elsewhere.
func bare(text []byte) http.Handler {
	size := strconv.Itoa(len(text))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/book" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", size)
		_, _ = w.Write(text)
	})
}

const nginxConf = `daemon off;
worker_processes 2;
pid %[1]s/nginx.pid;
error_log stderr notice;
%[2]s
events { worker_connections 1024; }
http {
	access_log off;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	proxy_cache_path %[1]s/cache keys_zone=books:1m;
	keepalive_requests 1000000000;
	server {
		listen %[3]s;
		location / {
			proxy_pass http://%[4]s;
			proxy_cache books;
			proxy_cache_valid 200 1h;
		}
	}
}
`

// startNginx runs nginx as a cache before the bare server.
func startNginx(ctx context.Context, dir, origin string) (*process, error) {
	dir = filepath.Join(dir, "nginx")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	addr, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;" // its workers would otherwise not get into the directory
	}
	conf := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConf, dir, user, addr, origin), 0o600); err != nil {
		return nil, err
	}
	listening := func(line string) (string, bool) { return addr, strings.Contains(line, "start worker processes") }
	return start(ctx, listening, find("nginx"), "-c", conf, "-p", dir, "-e", "stderr")
}

// find is a Debian program that may lie where only root looks.
func find(program string) string {
	if path := "/usr/sbin/" + program; fileExists(path) {
		return path
	}
	return program
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// freeAddr is an address for a program that cannot choose a free port itself.
func freeAddr(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
