package docs_test

import (
	"context"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/cmd/gateway/config"
)

// build makes the program as the Dockerfile does.
func build(t *testing.T) string {
	t.Helper()
	line := regexp.MustCompile(`CGO_ENABLED=0 go build (.*) -o /gateway ./cmd/gateway`).FindStringSubmatch(read(t, "Dockerfile"))
	if line == nil || !strings.Contains(line[1], "-trimpath") {
		t.Fatal("the Dockerfile does not build a static program without paths of the machine")
	}
	program := filepath.Join(t.TempDir(), "gateway")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // a cold cache on a busy machine
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", program, "./cmd/gateway")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return program
}

// TestProgram_isStaticAndHasTheCommands: it runs on an empty image, and every command that the README, the Dockerfile and
// the compose file name exists.
func TestProgram_isStaticAndHasTheCommands(t *testing.T) {
	program := build(t)
	if runtime.GOOS == "linux" {
		f, err := elf.Open(program)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close() // only read
		libraries, err := f.ImportedLibraries()
		if len(libraries) > 0 || slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
			t.Errorf("the program is not static: it wants %v (%v)", libraries, err)
		}
	}
	names := regexp.MustCompile("`gateway ((?:[a-z]+ ?)+)").FindAllStringSubmatch(read(t, "README.md"), -1)
	commands := []string{"serve", "healthcheck"} // of the Dockerfile
	for _, m := range names {
		commands = append(commands, strings.TrimSpace(m[1]))
	}
	slices.Sort(commands)
	for _, command := range slices.Compact(commands) {
		words := strings.Fields(command)
		out, err := exec.CommandContext(t.Context(), program, append(words, "--help")...).CombinedOutput()
		usage, _, _ := strings.Cut(string(out), "\n")
		// A second word is a command of its own, or stands for an argument.
		if len(words) > 1 && strings.Contains(usage, "<") {
			words = words[:1]
		}
		if err != nil || !strings.HasPrefix(usage, "Usage: gateway "+strings.Join(words, " ")) {
			t.Errorf("gateway %s --help: %v\n%s", command, err, out)
		}
	}
}

// compose is what matters here of docker-compose.yml.
type compose struct {
	Services map[string]struct {
		Environment map[string]string `yaml:"environment"`
		Ports       []string          `yaml:"ports"`
		Healthcheck struct {
			Test []string `yaml:"test"`
		} `yaml:"healthcheck"`
		DependsOn map[string]struct {
			Condition string `yaml:"condition"`
			Required  bool   `yaml:"required"`
		} `yaml:"depends_on"`
	} `yaml:"services"`
}

// TestCompose_isAConfiguration: the environment of the two container files is accepted, listens where the ports are
// published, and is published on loopback alone.
func TestCompose_isAConfiguration(t *testing.T) {
	var c compose
	if err := yaml.Unmarshal([]byte(read(t, "docker-compose.yml")), &c); err != nil {
		t.Fatal(err)
	}
	gateway := c.Services["gateway"]
	var env []string
	for name, value := range gateway.Environment {
		env = append(env, name+"="+value)
	}
	image := regexp.MustCompile(`(?m)^ENV (GATEWAY_\S+=\S+)`).FindAllStringSubmatch(read(t, "Dockerfile"), -1)
	if len(env) == 0 || len(image) == 0 {
		t.Fatalf("compose sets %v, the image %v", env, image)
	}
	for _, m := range image {
		env = append(env, m[1])
	}
	conf, err := config.Load(config.Sources{Env: env, Known: app.ExchangeIDs()})
	if err != nil {
		t.Fatal(err)
	}
	if err := conf.CheckExposure(""); err != nil {
		t.Error(err)
	}
	if conf.StateDir != "/state" || !slices.Equal(conf.Redis.Addrs, []string{"redis:6379"}) {
		t.Errorf("state in %s, redis at %v", conf.StateDir, conf.Redis.Addrs)
	}
	want := []string{"127.0.0.1:8080:" + port(conf.Listen), "127.0.0.1:8081:" + port(conf.AdminListen)}
	if !slices.Equal(gateway.Ports, want) {
		t.Errorf("published are %v, want %v", gateway.Ports, want)
	}
	if redis, ok := gateway.DependsOn["redis"]; !ok || redis.Condition != "service_started" || redis.Required {
		t.Errorf("Redis is optional, and the gateway waits for it: %+v", gateway.DependsOn)
	}
	if got := gateway.Healthcheck.Test; !slices.Equal(got, []string{"CMD", "/gateway", "healthcheck"}) {
		t.Errorf("the health check is %v", got)
	}
}

func port(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }
