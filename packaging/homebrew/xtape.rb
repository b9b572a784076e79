# A formula for Homebrew on Linux that builds this source tree: brew install --build-from-source packaging/homebrew/xtape.rb
class Xtape < Formula
  desc "Trains and runs neural networks on CPUs"
  homepage "file://#{File.expand_path("../../README.md", __dir__)}"
  url "file://#{File.expand_path("../..", __dir__)}", using: :git, branch: "main"
  version "0.2.0"
  license "MIT"

  depends_on "cli11" => :build
  depends_on "meson" => :build
  depends_on "ninja" => :build
  depends_on "nlohmann-json" => :build
  depends_on "pkgconf" => :build
  depends_on "protozero" => :build
  depends_on "xsimd" => :build
  depends_on "xxhash" => :build
  depends_on "jpeg-turbo"
  depends_on "libpng"
  depends_on :linux
  depends_on "pcre2"
  depends_on "sentencepiece"
  depends_on "utf8proc"
  depends_on "xtensor"
  depends_on "zlib"

  # Homebrew has no formula of Random123.
  resource "random123" do
    url "https://github.com/DEShawResearch/random123.git", tag: "v1.14.0"
  end

  def install
    resource("random123").stage { (buildpath/"random123").install "include" }
    ENV.append "CXXFLAGS", "-I#{buildpath}/random123/include"
    system "meson", "setup", "build", *std_meson_args, "-Ddefault_library=shared", "-Dtests=false", "-Dmpi=disabled",
           "-Donnx=enabled", "-Dgguf=enabled", "-Dc=enabled", "-Dwerror=false"
    system "ninja", "-C", "build"
    system "meson", "install", "-C", "build"
  end

  test do
    assert_match "xtape #{version}", shell_output("#{bin}/xtape --version")
    system bin/"xtape", "check", "gpt2"
  end
end
