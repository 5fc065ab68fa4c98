// One UDT stream over loopback, sender and receiver in two processes, for SECONDS; prints one line of JSON.
//
//     g++ -O2 -o udt udt.cpp -ludt && ./udt 3
//
// UDT 4.11 (Debian: libudt-dev). MSS 1500, so that a packet fills an Ethernet frame as fullpipe's do; buffers of 128 MB.

#include <arpa/inet.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <udt/udt.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static const int BUFFER = 128 << 20;

static void fail(const char *what) {
    fprintf(stderr, "udt: %s: %s\n", what, UDT::getlasterror().getErrorMessage());
    exit(1);
}

static UDTSOCKET open_socket() {
    UDTSOCKET s = UDT::socket(AF_INET, SOCK_STREAM, 0);
    int mss = 1500, window = BUFFER / 1500;
    UDT::setsockopt(s, 0, UDT_MSS, &mss, sizeof mss);
    UDT::setsockopt(s, 0, UDT_FC, &window, sizeof window);
    for (UDT::SOCKOPT option : {UDT_SNDBUF, UDT_RCVBUF, UDP_SNDBUF, UDP_RCVBUF})
        UDT::setsockopt(s, 0, option, &BUFFER, sizeof BUFFER);
    return s;
}

static double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

static double cpu(const rusage &usage) {
    return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + 1e-6 * (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void send(int from, double seconds) {
    int port;
    if (read(from, &port, sizeof port) != sizeof port) exit(1);
    UDT::startup();
    UDTSOCKET s = open_socket();
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = port;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (UDT::connect(s, (sockaddr *)&to, sizeof to) == UDT::ERROR) fail("connect");
    std::vector<char> data(1 << 20);
    // Until the receiver has had enough and ends this process.
    for (auto start = std::chrono::steady_clock::now(); seconds_since(start) < seconds + 10;)
        if (UDT::send(s, data.data(), data.size(), 0) == UDT::ERROR) break;
    _exit(0);
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 3;
    int pipe_ends[2];
    if (pipe(pipe_ends)) return 1;
    pid_t sender = fork();
    if (sender == 0) send(pipe_ends[0], seconds);

    UDT::startup();
    UDTSOCKET listener = open_socket();
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int length = sizeof own;
    if (UDT::bind(listener, (sockaddr *)&own, sizeof own) == UDT::ERROR) fail("bind");
    UDT::getsockname(listener, (sockaddr *)&own, &length);
    UDT::listen(listener, 1);
    int port = own.sin_port;
    if (write(pipe_ends[1], &port, sizeof port) != sizeof port) return 1;
    UDTSOCKET s = UDT::accept(listener, nullptr, nullptr);
    if (s == UDT::INVALID_SOCK) fail("accept");

    std::vector<char> data(1 << 20);
    long long bytes = 0;
    auto start = std::chrono::steady_clock::now();
    while (seconds_since(start) < seconds) {
        int n = UDT::recv(s, data.data(), data.size(), 0);
        if (n == UDT::ERROR) break;
        bytes += n;
    }
    double took = seconds_since(start);
    rusage mine{}, theirs{};
    getrusage(RUSAGE_SELF, &mine);
    kill(sender, SIGKILL);
    int status;
    wait4(sender, &status, 0, &theirs);
    printf("{\"bytes\": %lld, \"seconds\": %.6f, \"sender_cpu_s\": %.6f, \"receiver_cpu_s\": %.6f}\n", bytes, took, cpu(theirs),
           cpu(mine));
    fflush(stdout);
    _exit(0);
}
